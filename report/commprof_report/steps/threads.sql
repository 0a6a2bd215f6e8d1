-- The threads of each rank, and whether they negotiate.
SELECT world_rank, thread, name, is_main, negotiating.thread IS NOT NULL AS is_negotiating
FROM thread
LEFT JOIN negotiating USING (world_rank, thread)
ORDER BY world_rank, thread;
