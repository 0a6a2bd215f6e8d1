-- Median duration of the sampled collectives and messages, of nonblocking and persistent ones from start to completion, for each communicator
-- and call; for NCCL, the duration on the device.
WITH lasted AS (
    SELECT identity, CASE WHEN is_shared THEN 'ncclGroup' ELSE sample.call END AS call,
           CASE library WHEN 'nccl' THEN device_end_ns - device_start_ns ELSE coalesce(completed_ns, end_ns) - start_ns END AS duration_ns
    FROM sample
    JOIN communicator USING (world_rank, communicator)
    JOIN synchronizing USING (call)
    WHERE sequence IS NOT NULL AND call NOT IN (SELECT name FROM call WHERE form = 'persistent')
    UNION ALL
    SELECT identity, call, completed_ns - start_ns
    FROM sample_start
    JOIN communicator USING (world_rank, communicator)
    UNION ALL
    SELECT identity, call, coalesce(completed_ns, end_ns) - start_ns
    FROM message
    JOIN communicator USING (world_rank, communicator)
    UNION ALL
    SELECT identity, sample.call, end_ns - start_ns
    FROM sample
    JOIN call ON call.name = sample.call
    JOIN communicator USING (world_rank, communicator)
    WHERE family = 'probe' AND number IS NOT NULL
),
placed AS (
    SELECT identity, call, duration_ns,
           row_number() OVER (PARTITION BY identity, call ORDER BY duration_ns) AS place,
           count(*) OVER (PARTITION BY identity, call) AS count
    FROM lasted
    WHERE duration_ns IS NOT NULL
)
SELECT identity, call, duration_ns AS median_ns FROM placed WHERE place = (count + 1) / 2;
