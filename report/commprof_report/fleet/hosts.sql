-- How often did a host come last in a user's jobs, and how often would any host in its place? Jobs
-- of one program on as many hosts are alike: in each such stratum, and place in the job's list of
-- hosts, mean and variance are those of a 2 x 2 table (Cochran, Mantel and Haenszel).
WITH alike AS (
    SELECT host, user_name, program, hosts, place, is_last, behind_ns, job_hosts.wall_ns AS host_ns
    FROM job_hosts
    JOIN jobs ON jobs.run = job_hosts.run
    WHERE hosts > 1 AND program <> ''
),
strata AS (
    SELECT program, hosts, place, count(*) * 1e0 AS whole, sum(is_last) * 1e0 AS came_last
    FROM alike
    GROUP BY program, hosts, place
),
own AS (
    SELECT host, user_name, program, hosts, place, count(*) * 1e0 AS own_jobs,
           sum(is_last) AS own_last, sum(behind_ns) AS own_behind_ns, sum(host_ns) AS own_ns
    FROM alike
    GROUP BY host, user_name, program, hosts, place
)
SELECT host, user_name, sum(own_jobs) AS jobs, sum(own_last) AS last_jobs,
       sum(own_jobs * came_last / whole) AS expected_jobs,
       sum(CASE WHEN whole > 1
                THEN own_jobs * (whole - own_jobs) / whole * came_last * (whole - came_last)
                     / (whole * (whole - 1)) ELSE 0 END) AS variance,
       sum(own_behind_ns) AS behind_ns, sum(own_ns) AS wall_ns
FROM own
JOIN strata
    ON strata.program = own.program AND strata.hosts = own.hosts AND strata.place = own.place
GROUP BY host, user_name
ORDER BY host, user_name;
