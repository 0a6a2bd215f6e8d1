-- The ranks that returned from MPI_Finalize: when that was, in their own time, and how long they were inside. Nothing unless the user chose it.
SELECT rank.world_rank, wall_ns AS end_ns, sum(total_ns) AS inside_ns
FROM rank
JOIN cell USING (world_rank)
WHERE ended = 'finalize' AND call = 'MPI_Finalize' AND call IN (SELECT call FROM selected_call)
GROUP BY rank.world_rank
ORDER BY rank.world_rank;
