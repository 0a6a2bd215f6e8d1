-- The collectives in which steps are sought. For each communicator: the samples of its lowest rank that has any, from the blocks that all
-- its ranks retain. A call's size is compared between steps unless each rank has its own size (v-variants). NCCL operations have device
-- times if nine in ten of the communicator's have them (with intermittent tracing, steps would seem long and short); otherwise the time
-- of enqueueing. A small nonblocking collective ends with its call, so that it does not hide a pause in which the rank computes. Small
-- collectives of threads other than the main one are a framework's control messages (Horovod) and are ignored.
DROP TABLE IF EXISTS temp.speaking;
CREATE TEMP TABLE speaking AS
SELECT identity, own.world_rank, communicator, level AS sample_level
FROM communicator AS own
JOIN (
    SELECT identity, min(world_rank) AS world_rank, max(sample_level) AS level
    FROM communicator
    WHERE sample_level IS NOT NULL AND communicator > 1 AND size + remote_size > 1
    GROUP BY identity
) AS spoken USING (identity, world_rank);

DROP TABLE IF EXISTS temp.timed_on_device;
CREATE TEMP TABLE timed_on_device AS
SELECT identity
FROM sample
JOIN communicator USING (world_rank, communicator)
WHERE library = 'nccl' AND sequence IS NOT NULL
GROUP BY identity
HAVING 10 * count(device_end_ns) >= 9 * count(*);

WITH sampled AS (
    SELECT speaking.identity,
           sequence,
           sample.call,
           CASE WHEN coalesce(is_own, 0) THEN 0 ELSE coalesce(bytes, 0) END AS bytes,
           CASE WHEN timed_on_device.identity IS NULL THEN start_ns ELSE coalesce(device_start_ns, start_ns) END AS start_ns,
           end_ns AS returned_ns,
           CASE WHEN device_end_ns IS NULL THEN coalesce(completed_ns, 0)
                WHEN timed_on_device.identity IS NULL THEN 0
                ELSE device_end_ns END AS completed_ns,
           family IN ('collective', 'neighborhood') AND call.form <> 'persistent' AS is_collective,
           bytes IS NULL OR bytes > coalesce(threshold_bytes, 64) AS is_large,
           coalesce(is_main, 1) AS is_main
    FROM sample
    JOIN speaking USING (world_rank, communicator)
    LEFT JOIN timed_on_device ON timed_on_device.identity = speaking.identity
    LEFT JOIN thread ON thread.world_rank = sample.world_rank AND thread.thread = sample.thread
    LEFT JOIN call ON call.name = sample.call
    LEFT JOIN control_size ON control_size.call = sample.call
    LEFT JOIN rated_call ON rated_call.call = sample.call
    WHERE sequence IS NOT NULL AND ((sequence - 1) / 1024 + 1) & ((1 << min(sample_level, 62)) - 1) = 0
)
SELECT identity, sequence, call, bytes, start_ns,
       CASE WHEN is_collective AND is_large THEN max(returned_ns, completed_ns) ELSE returned_ns END AS end_ns,
       coalesce(is_collective AND is_large, 0) AS is_bulk,
       coalesce(is_collective AND NOT is_large AND is_main, 0) AS is_small
FROM sampled
ORDER BY identity, sequence;
