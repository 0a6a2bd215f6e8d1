-- When did any thread of each rank last begin or end a call? For a rank without calls, its start.
SELECT rank.world_rank, coalesce(max(doing_since_unix_ns), start_unix_ns) AS acted_unix_ns
FROM rank
LEFT JOIN doing USING (world_rank)
GROUP BY rank.world_rank
ORDER BY rank.world_rank;
