-- When did any thread of each rank last begin or end a call (a rank without calls: its start), and until when is it known to have lived?
-- Of a killed rank, the last reading of its threads' CPU time is known; the time of its file may be that of a copy.
SELECT rank.world_rank AS rank, state IN ('finalize', 'end') AS is_done, is_copy,
       coalesce(max(doing_since_unix_ns), start_unix_ns) AS acted_unix_ns,
       CASE WHEN state IN ('running', 'exit', 'abort') OR is_copy THEN last_unix_ns
            ELSE start_unix_ns + (SELECT max(at_ns) FROM cpu_time WHERE cpu_time.world_rank = rank.world_rank)
            END AS alive_unix_ns
FROM rank
JOIN rank_state USING (world_rank)
LEFT JOIN doing USING (world_rank)
GROUP BY rank.world_rank
ORDER BY rank.world_rank;
