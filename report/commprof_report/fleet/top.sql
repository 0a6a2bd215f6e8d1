-- Whose jobs spend most rank hours in a call (asked: a pattern of LIKE)? By user and program.
WITH spent AS (
    SELECT run, sum(calls) AS calls, sum(total_ns) AS total_ns
    FROM size_rows
    WHERE measure = 'call' AND call LIKE (SELECT wanted_call FROM asked)
    GROUP BY run
)
SELECT user_name, program, count(*) AS jobs, sum(calls) AS calls,
       sum(total_ns) / 3.6e12 AS call_hours,
       sum(rank_ns) / 3.6e12 AS rank_hours,
       sum(total_ns) * 1e0 / nullif(sum(rank_ns), 0) AS call_share
FROM spent
JOIN jobs ON jobs.run = spent.run
GROUP BY user_name, program
ORDER BY call_hours DESC, user_name, program;
