-- How many calls carried messages of each size class (table hvprof_class), and how long did they
-- take? One row per call, kind of traffic and class, and per rank if :per_rank; separate rows for
-- the calls that start operations, and for these: NCCL's on the device, nonblocking ones from start
-- to completion. Steps are those of table hvprof_step.
DELETE FROM grouped_cell;
INSERT INTO grouped_cell
SELECT dense_rank() OVER (
           ORDER BY call, timed, traffic, low_bytes, CASE WHEN :per_rank THEN world_rank END
       ), cell
FROM chosen_cell
JOIN cell_traffic USING (cell)
JOIN hvprof_class ON bytes BETWEEN low_bytes AND coalesce(high_bytes, bytes)
WHERE bandwidth <> 'silent';

-- The cells in which a sampled call may have been counted, by what a sample says.
DROP TABLE IF EXISTS temp.hvprof_cell;
CREATE TEMP TABLE hvprof_cell (
    measure TEXT, world_rank INTEGER, thread INTEGER, call TEXT, communicator INTEGER,
    region INTEGER, bytes INTEGER, memory_kind TEXT, cell INTEGER NOT NULL,
    PRIMARY KEY (measure, world_rank, thread, call, communicator, region, bytes, memory_kind)
) WITHOUT ROWID;
INSERT OR IGNORE INTO hvprof_cell
SELECT measure, world_rank, thread, call, communicator, region, bytes, memory_kind, cell
FROM cell
WHERE measure IN ('call', 'device', 'completion') AND EXISTS (SELECT 1 FROM hvprof_step);

-- The sampled calls that began in these steps, NCCL's operations by the begin of their kernels.
DROP TABLE IF EXISTS temp.hvprof_call;
CREATE TEMP TABLE hvprof_call AS
WITH begun AS (
    SELECT sample.*, coalesce(device_start_ns, start_ns) AS begun_ns,
           coalesce(signature.memory_kind, '') AS known_kind
    FROM sample
    LEFT JOIN signature USING (world_rank, signature)
    WHERE bytes IS NOT NULL AND EXISTS (SELECT 1 FROM hvprof_step)
)
SELECT world_rank, thread, call, communicator, region, bytes, known_kind, count(*) AS calls,
       sum(end_ns - start_ns) AS host_ns,
       CASE count(*) WHEN total(is_shared = 0) THEN sum(device_end_ns - device_start_ns) END
           AS device_ns,
       CASE count(*) WHEN count(completed_ns) THEN sum(completed_ns - start_ns) END AS completion_ns
FROM begun
WHERE begun_ns < (
    SELECT end_ns FROM hvprof_step
    WHERE hvprof_step.world_rank = begun.world_rank AND begin_ns <= begun_ns
    ORDER BY begin_ns DESC LIMIT 1
)
GROUP BY world_rank, thread, call, communicator, region, bytes, known_kind;

WITH stepped AS (
    SELECT hvprof_call.bytes, calls,
           CASE measure WHEN 'call' THEN host_ns WHEN 'device' THEN device_ns ELSE completion_ns END
               AS spent_ns,
           (
               SELECT cell FROM hvprof_cell
               WHERE hvprof_cell.measure = timing.measure
                 AND hvprof_cell.world_rank = hvprof_call.world_rank
                 AND hvprof_cell.thread = hvprof_call.thread
                 AND hvprof_cell.call = hvprof_call.call
                 AND hvprof_cell.communicator = hvprof_call.communicator
                 AND hvprof_cell.region = hvprof_call.region
                 AND hvprof_cell.bytes >= hvprof_call.bytes
                 AND known_kind IN ('', hvprof_cell.memory_kind)
               ORDER BY hvprof_cell.bytes LIMIT 1
           ) AS cell
    FROM hvprof_call,
         (SELECT 'call' AS measure UNION ALL SELECT 'device' UNION ALL SELECT 'completion') AS timing
),
in_steps AS (
    SELECT row, sum(calls) AS calls, sum(calls * bytes) AS bytes,
           CASE count(*) WHEN count(spent_ns) THEN sum(spent_ns) END AS spent_ns
    FROM stepped
    JOIN grouped_cell USING (cell)
    GROUP BY row
),
carried AS (
    SELECT row, call, family, library, timed, traffic, low_bytes, high_bytes,
           CASE WHEN :per_rank THEN world_rank END AS rank, count(DISTINCT world_rank) AS ranks,
           count(DISTINCT bytes) AS sizes, min(bytes) AS smallest_bytes, max(bytes) AS largest_bytes,
           sum(count) AS count, sum(count * bytes) AS message_bytes, sum(total_ns) AS total_ns,
           min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM grouped_cell
    JOIN chosen_cell USING (cell)
    JOIN cell_traffic USING (cell)
    JOIN hvprof_class ON bytes BETWEEN low_bytes AND coalesce(high_bytes, bytes)
    GROUP BY row
),
counted AS (
    SELECT carried.*, coalesce(calls, 0) AS step_calls, coalesce(in_steps.bytes, 0) AS step_bytes,
           CASE WHEN in_steps.row IS NULL THEN 0 ELSE spent_ns END AS step_spent_ns,
           nullif((
               SELECT count(*) FROM hvprof_step
               WHERE world_rank IN (SELECT world_rank FROM selected_rank)
                 AND world_rank = coalesce(rank, world_rank)
           ), 0) AS steps
    FROM carried
    LEFT JOIN in_steps USING (row)
)
SELECT :fusion AS fusion,
       upper(library) AS library,
       call,
       family,
       traffic,
       rank,
       low_bytes AS bytes_low,
       high_bytes AS bytes_high,
       ranks,
       count,
       sizes,
       smallest_bytes,
       largest_bytes,
       message_bytes,
       total_ns,
       total_ns * 1.0 / count AS mean_ns,
       min_ns,
       p50_ns,
       p99_ns,
       max_ns,
       timed = 'call' AND call IN (SELECT name FROM call WHERE form <> 'blocking') AS is_start,
       total_ns * 1.0 / nullif(total(total_ns) OVER (PARTITION BY call, timed, rank), 0) AS share_of_call,
       timed AS measure,
       step_calls * 1.0 / steps AS calls_per_step,
       step_bytes * 1.0 / steps AS bytes_per_step,
       step_spent_ns * 1.0 / steps AS time_per_step_ns
FROM counted
JOIN percentile USING (row)
ORDER BY total(total_ns) OVER (PARTITION BY call) DESC, call, timed = 'call', timed, rank,
         traffic, low_bytes;
