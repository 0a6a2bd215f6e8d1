-- The samples of each rank in order of time, without set-up calls. The bytes of a call that starts persistent operations, or that completes
-- operations, are those of all these operations. is_data: 1 of a bulk collective, 0 of a control one
-- (traffic_class.sql), null of other calls.
WITH operation AS (
    SELECT world_rank, completed_ns, bytes
    FROM sample
    WHERE completed_ns IS NOT NULL
    UNION ALL
    SELECT world_rank, completed_ns, bytes
    FROM sample_message
    WHERE completed_ns IS NOT NULL
    UNION ALL
    SELECT world_rank, completed_ns, bytes
    FROM sample_start
    WHERE completed_ns IS NOT NULL
),
completed AS (
    SELECT world_rank, completed_ns, total(bytes) AS bytes FROM operation GROUP BY world_rank, completed_ns
),
begun AS (
    SELECT world_rank, thread, start_ns, bytes FROM sample_start
    UNION ALL
    SELECT world_rank, thread, start_ns, bytes
    FROM sample_message
    JOIN call ON call.name = sample_message.call
    WHERE form = 'persistent'
),
started AS (
    SELECT world_rank, thread, start_ns, total(bytes) AS bytes FROM begun GROUP BY world_rank, thread, start_ns
)
SELECT sample.world_rank,
       sample.thread,
       sample.call,
       communicator,
       sequence,
       sample.start_ns,
       sample.end_ns,
       CASE WHEN family = 'completion' THEN CAST(coalesce(completed.bytes, 0) AS INTEGER)
            WHEN sample.call IN ('MPI_Start', 'MPI_Startall') THEN CAST(coalesce(started.bytes, 0) AS INTEGER)
            ELSE sample.bytes END AS bytes,
       CASE WHEN is_control THEN 'negotiation' ELSE coalesce(family, 'unknown') END AS family,
       coalesce(library, 'mpi') AS library,
       device_start_ns,
       device_end_ns,
       is_shared,
       CASE WHEN family IN ('collective', 'neighborhood')
            THEN coalesce(NOT is_control, coalesce(sample.bytes, 0) > coalesce(threshold_bytes, 64))
       END AS is_data
FROM sample
LEFT JOIN call ON call.name = sample.call
LEFT JOIN completed ON family = 'completion' AND completed.world_rank = sample.world_rank AND completed.completed_ns = sample.end_ns
LEFT JOIN control_size ON control_size.call = sample.call
LEFT JOIN told_sample ON told_sample.world_rank = sample.world_rank
                     AND told_sample.thread = sample.thread
                     AND told_sample.call = sample.call
                     AND told_sample.bytes = sample.bytes
                     AND told_sample.signature = sample.signature
LEFT JOIN started ON started.world_rank = sample.world_rank AND started.thread = sample.thread AND started.start_ns = sample.start_ns
WHERE coalesce(family, '') <> 'setup' AND sample.world_rank IN (SELECT world_rank FROM run_step)
ORDER BY sample.world_rank, sample.start_ns, sample.end_ns;
