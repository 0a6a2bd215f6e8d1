-- The ranks of a timeline, and how long each lasted, by its own clock.
SELECT rank.world_rank AS rank,
       coalesce(rank_wall.wall_ns, (SELECT max(end_ns) FROM sample WHERE sample.world_rank = rank.world_rank), 0) AS wall_ns
FROM rank
JOIN rank_wall USING (world_rank)
ORDER BY rank.world_rank;
