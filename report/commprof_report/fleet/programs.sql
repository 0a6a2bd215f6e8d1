-- Which programs would gain most, in rank hours? uneven: what ranks wait longer than the one that
-- waits least; small: collectives of 4 KiB or less.
WITH small AS (
    SELECT run, sum(total_ns) AS small_ns
    FROM size_rows
    WHERE measure = 'call' AND family = 'collective' AND high_bytes <= 4096
    GROUP BY run
)
SELECT program, count(*) AS jobs, count(DISTINCT user_name) AS users,
       sum(rank_ns) / 3.6e12 AS rank_hours,
       sum(in_mpi_ns) * 1e0 / nullif(sum(rank_ns), 0) AS mpi_share,
       sum(uneven_ns) / 3.6e12 AS uneven_hours,
       sum(coalesce(small_ns, 0)) / 3.6e12 AS small_hours
FROM jobs
LEFT JOIN small ON small.run = jobs.run
GROUP BY program
ORDER BY uneven_hours DESC, program;
