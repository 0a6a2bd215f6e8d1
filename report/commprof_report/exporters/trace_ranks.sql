-- The ranks of a timeline, with their begin and end.
SELECT rank.world_rank AS rank,
       host.value AS host,
       coalesce(rank_wall.wall_ns, (SELECT max(end_ns) FROM sample WHERE sample.world_rank = rank.world_rank), 0) AS wall_ns,
       state
FROM rank
JOIN rank_wall USING (world_rank)
JOIN rank_state USING (world_rank)
LEFT JOIN fact AS host ON host.world_rank = rank.world_rank AND host.key = 'host'
ORDER BY rank.world_rank;
