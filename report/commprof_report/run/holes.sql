-- When may samples of a rank be missing? Between two collectives of a communicator that do not follow each other, and outside the sampling
-- windows of a thread that makes other calls. Communicators with less than 1 % of the rank's time in collectives, and threads that spend
-- less than 1 % of their time inside MPI in other calls, are ignored. thread: null for all threads. Times are the rank's own. Sought once.
CREATE TEMP TABLE IF NOT EXISTS hole AS
WITH spent AS (
    SELECT world_rank, communicator, total(total_ns) AS total_ns
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE family IN ('collective', 'neighborhood', 'communicator') AND measure IN ('call', 'poll')
    GROUP BY world_rank, communicator
),
whole AS (
    SELECT world_rank, total(total_ns) AS total_ns FROM spent GROUP BY world_rank
),
sampled AS (
    SELECT world_rank, communicator, count(*) AS collectives FROM sample WHERE sequence IS NOT NULL GROUP BY world_rank, communicator
),
incomplete AS (
    SELECT communicator.world_rank, communicator, communicator.collectives
    FROM communicator
    JOIN spent USING (world_rank, communicator)
    JOIN whole USING (world_rank)
    LEFT JOIN sampled USING (world_rank, communicator)
    WHERE communicator.collectives > coalesce(sampled.collectives, 0) AND spent.total_ns > 0.01 * whole.total_ns
),
numbered AS (
    SELECT world_rank, communicator, collectives, sequence, start_ns, end_ns,
           lag(sequence, 1, 0) OVER own AS before, lag(end_ns, 1, 0) OVER own AS before_ns, lead(sequence) OVER own AS after
    FROM incomplete
    JOIN sample USING (world_rank, communicator)
    WHERE sequence IS NOT NULL
    WINDOW own AS (PARTITION BY world_rank, communicator ORDER BY start_ns)
),
windowed AS (
    SELECT world_rank, thread
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE measure = 'call' AND family <> 'setup'
    GROUP BY world_rank, thread
    HAVING total(CASE WHEN family IN ('point-to-point', 'completion', 'probe', 'rma', 'io') THEN total_ns END) > 0.01 * total(total_ns)
),
bounded AS (
    SELECT world_rank, thread, lag(end_ns, 1, 0) OVER own AS left_ns, begin_ns, end_ns, lead(begin_ns) OVER own AS next_ns
    FROM windowed
    JOIN sample_window USING (world_rank, thread)
    WINDOW own AS (PARTITION BY world_rank, thread ORDER BY begin_ns)
)
SELECT world_rank, NULL AS thread, before_ns AS begin_ns, start_ns AS end_ns FROM numbered WHERE sequence > before + 1
UNION ALL
SELECT world_rank, NULL, end_ns, 1 << 62 FROM numbered WHERE after IS NULL AND sequence < collectives
UNION ALL
SELECT world_rank, NULL, 0, 1 << 62 FROM incomplete WHERE (world_rank, communicator) NOT IN (SELECT world_rank, communicator FROM numbered)
UNION ALL
SELECT world_rank, thread, left_ns, begin_ns FROM bounded WHERE begin_ns > left_ns
UNION ALL
SELECT world_rank, thread, end_ns, 1 << 62 FROM bounded WHERE next_ns IS NULL
UNION ALL
SELECT world_rank, thread, 0, 1 << 62 FROM windowed WHERE (world_rank, thread) NOT IN (SELECT world_rank, thread FROM sample_window)
ORDER BY 1, 3;

SELECT world_rank, thread, begin_ns, end_ns FROM hole ORDER BY rowid;
