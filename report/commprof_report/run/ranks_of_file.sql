-- Which ranks of which run are in a file? The wall clock may have been set back during the run; the monotonic clock was not.
SELECT run_id, world_rank, world_size, start_unix_ns, max(end_unix_ns, start_unix_ns + coalesce(wall_ns, 0)) AS end_unix_ns,
       coalesce((SELECT CAST(value AS TEXT) FROM fact WHERE fact.world_rank = rank.world_rank AND key = 'program'), '') AS program
FROM rank
ORDER BY world_rank;
