-- The split calls of each rank.
SELECT world_rank, start_ns, wait_ns, last_rank
FROM late_call
JOIN run_communicator USING (identity)
WHERE library = 'mpi'
ORDER BY world_rank;
