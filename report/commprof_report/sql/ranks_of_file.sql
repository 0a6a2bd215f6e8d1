-- Which ranks of which run does a file hold?
SELECT run_id, world_rank, world_size, start_unix_ns, end_unix_ns
FROM rank
ORDER BY world_rank;
