-- Which process was each rank, and when did it run, by its host's wall clock? stepped_ns: by how
-- much that clock was set during the run.
SELECT rank.world_rank AS rank,
       pid,
       host.value AS host,
       start_unix_ns,
       start_unix_ns + rank_wall.wall_ns AS end_unix_ns,
       coalesce(end_unix_ns - start_unix_ns - rank.wall_ns, 0) AS stepped_ns,
       state
FROM rank
JOIN rank_wall USING (world_rank)
JOIN rank_state USING (world_rank)
LEFT JOIN fact AS host ON host.world_rank = rank.world_rank AND host.key = 'host'
ORDER BY rank.world_rank;
