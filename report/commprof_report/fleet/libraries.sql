-- Do jobs of one program spend another share of their time in MPI with another library? Observed,
-- not tried: users and inputs differ, too.
WITH several AS (
    SELECT program FROM jobs WHERE library <> '' GROUP BY program HAVING count(DISTINCT library) > 1
)
SELECT jobs.program, library, count(*) AS jobs, count(DISTINCT user_name) AS users,
       sum(rank_ns) / 3.6e12 AS rank_hours,
       sum(in_mpi_ns) * 1e0 / nullif(sum(rank_ns), 0) AS mpi_share, min(day) AS first_day,
       max(day) AS last_day
FROM jobs
JOIN several ON several.program = jobs.program
GROUP BY jobs.program, library
ORDER BY jobs.program, library;
