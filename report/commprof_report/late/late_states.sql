-- How long did the ranks wait, by kind of waiting?
WITH kind AS (
    SELECT wait_state, count(*) AS calls, total(wait_ns * factor) AS wait_ns
    FROM late_scaled
    WHERE wait_state IS NOT NULL AND world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY wait_state
)
SELECT wait_state, calls, CAST(round(wait_ns) AS INTEGER) AS wait_ns, wait_ns / nullif((SELECT total(wait_ns) FROM kind), 0) AS share
FROM kind
ORDER BY wait_ns DESC, wait_state;
