-- What did one job (asked: its id) do? A row for each call, role and class of sizes.
SELECT run_id, day, user_name, program, library, ended, ranks, hosts, wall_ns, call, role,
       high_bytes, measure, calls, volume_bytes,
       total_ns, total_ns * 1e0 / calls AS mean_ns,
       total_ns * 1e0 / nullif(rank_ns, 0) AS call_share
FROM jobs
JOIN size_rows ON size_rows.run = jobs.run
WHERE run_id = (SELECT wanted_job FROM asked)
ORDER BY start_s, total_ns DESC, call, role, high_bytes, measure;
