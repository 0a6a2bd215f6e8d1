-- How much of a month's rank hours is spent in MPI, and in a call (asked)?
WITH spent AS (
    SELECT run, sum(total_ns) AS total_ns
    FROM size_rows
    WHERE measure = 'call' AND call LIKE (SELECT wanted_call FROM asked)
    GROUP BY run
)
SELECT month, cluster, count(*) AS jobs, count(DISTINCT user_name) AS users,
       sum(CASE WHEN ended = 'killed' THEN 1 ELSE 0 END) AS killed_jobs,
       sum(rank_ns) / 3.6e12 AS rank_hours,
       sum(in_mpi_ns) * 1e0 / nullif(sum(rank_ns), 0) AS mpi_share,
       sum(coalesce(total_ns, 0)) / 3.6e12 AS call_hours,
       sum(coalesce(total_ns, 0)) * 1e0 / nullif(sum(rank_ns), 0) AS call_share
FROM jobs
LEFT JOIN spent ON spent.run = jobs.run
GROUP BY month, cluster
ORDER BY month, cluster;
