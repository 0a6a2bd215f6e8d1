-- What do the jobs of a program (asked) have from a day (asked) on that they had not before? In
-- nine of ten jobs, and before in at most one of ten.
WITH own AS (
    SELECT run, CASE WHEN day >= (SELECT wanted_day FROM asked) THEN 1e0 ELSE 0e0 END AS is_after
    FROM jobs
    WHERE program = (SELECT wanted_program FROM asked)
),
whole AS (
    SELECT sum(is_after) AS jobs_after, sum(1 - is_after) AS jobs_before FROM own
),
said AS (
    SELECT name, value, sum(is_after) AS said_after, sum(1 - is_after) AS said_before
    FROM settings
    JOIN own ON own.run = settings.run
    GROUP BY name, value
)
SELECT name, value
FROM said
CROSS JOIN whole
WHERE said_after >= 0.9 * jobs_after AND said_before <= 0.1 * jobs_before
ORDER BY name, value;
