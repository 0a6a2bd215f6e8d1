-- When may samples of a rank be missing? Outside the sampling windows of a thread that makes calls. Times are the rank's own. Sought once.
-- A call belongs to the window in which it returns, so what a thread did between its last sample in a window and the window's end may be
-- a call that is not sampled.
CREATE TEMP TABLE IF NOT EXISTS hole AS
WITH calling AS (
    SELECT DISTINCT world_rank, thread
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE measure = 'call' AND family <> 'setup'
),
bounded AS (
    SELECT world_rank, thread, lag(end_ns, 1, 0) OVER own AS left_ns, begin_ns, end_ns, lead(begin_ns) OVER own AS next_ns
    FROM calling
    JOIN sample_window USING (world_rank, thread)
    WINDOW own AS (PARTITION BY world_rank, thread ORDER BY begin_ns)
)
SELECT world_rank, thread, left_ns AS begin_ns, begin_ns AS end_ns FROM bounded WHERE begin_ns > left_ns
UNION ALL
SELECT world_rank, thread, end_ns, 1 << 62
FROM bounded
JOIN rank_wall USING (world_rank)
WHERE next_ns IS NULL AND end_ns < coalesce(wall_ns, 1 << 62)
UNION ALL
SELECT world_rank, thread, 0, 1 << 62 FROM calling WHERE (world_rank, thread) NOT IN (SELECT world_rank, thread FROM sample_window)
ORDER BY 1, 3;

SELECT world_rank, thread, begin_ns, end_ns FROM hole ORDER BY rowid;
