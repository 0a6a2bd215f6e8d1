-- How long did a call last in a program's jobs of each day? The median of the jobs' means, of rows
-- with a hundredth of a job's time or more.
SELECT program, jobs.ranks AS ranks, jobs.hosts AS hosts, call, role, high_bytes, measure, day,
       count(*) AS jobs, median(size_rows.total_ns * 1e0 / calls) AS mean_ns
FROM jobs
JOIN size_rows ON size_rows.run = jobs.run
WHERE program <> '' AND family <> 'setup' AND call <> '(other)'
  AND size_rows.total_ns * 100 >= rank_ns
GROUP BY program, jobs.ranks, jobs.hosts, call, role, high_bytes, measure, day
ORDER BY program, ranks, hosts, call, role, high_bytes, measure, day;
