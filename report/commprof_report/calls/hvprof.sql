-- How many sampled calls of each cell began in the steps of table hvprof_step, and how long did
-- they take, on the host, on the device and from start to completion?
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
WITH begun AS (
    SELECT sample.*, coalesce(device_start_ns, start_ns) AS begun_ns,
           coalesce(signature.memory_kind, '') AS known_kind
    FROM sample
    LEFT JOIN signature USING (world_rank, signature)
    WHERE bytes IS NOT NULL AND EXISTS (SELECT 1 FROM hvprof_step)
),
hvprof_call AS (
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
    GROUP BY world_rank, thread, call, communicator, region, bytes, known_kind
)
SELECT calls, calls * bytes AS bytes,
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
     (SELECT 'call' AS measure UNION ALL SELECT 'device' UNION ALL SELECT 'completion') AS timing;
