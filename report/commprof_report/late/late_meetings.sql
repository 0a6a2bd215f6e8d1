-- Waits for a rank, and blocking collectives in which all depend on all, in order of the arrival that ended the waiting; of one arrival, the
-- waits first. wait: row of late_call; null for a collective. is_followed: on the host, and on clocks that show when ranks arrived.
SELECT late_call.rowid AS wait, world_rank, last_rank, identity, start_ns, start_ns + wait_ns AS arrival_ns, wait_ns,
       NOT is_estimate AND library = 'mpi' AS is_followed
FROM late_call
JOIN run_communicator USING (identity)
WHERE wait_ns > 0 AND last_rank IS NOT NULL
UNION ALL
SELECT NULL, NULL, NULL, identity, NULL, max(start_ns), 0, 1
FROM late_call
JOIN synchronizing USING (call)
WHERE kind = 'all' AND is_blocking AND NOT is_estimate
GROUP BY identity, sequence
ORDER BY arrival_ns, wait DESC;
