-- Which collectives of which communicators are there to find steps in? Each communicator's as its lowest rank that keeps any has kept
-- them, of the blocks that all its ranks keep. What of a call is the same in every step: its size, unless each rank has its own (v-variants).
-- NCCL's operations are on the device where that is known of nine in ten of the communicator's (a GPU that is traced now and then would
-- make steps long and short); else when they were put into the queue. A small one that is under way while the rank computes does not hide
-- the pause: it ends with its call. Small ones of other threads than the main one are a framework's talk (Horovod), and tell nothing.
DROP TABLE IF EXISTS temp.speaking;
CREATE TEMP TABLE speaking AS
SELECT identity, spoken.world_rank, communicator, sample_level
FROM communicator AS own
JOIN (
    SELECT identity, min(world_rank) AS world_rank, max(sample_level) AS level
    FROM communicator
    WHERE sample_level IS NOT NULL AND communicator > 1 AND size + remote_size > 1
    GROUP BY identity
) AS spoken USING (identity, world_rank);
UPDATE speaking SET sample_level = (SELECT max(sample_level) FROM communicator WHERE communicator.identity = speaking.identity);

DROP TABLE IF EXISTS temp.timed_on_device;
CREATE TEMP TABLE timed_on_device AS
SELECT identity
FROM sample
JOIN communicator USING (world_rank, communicator)
WHERE library = 'nccl' AND sequence IS NOT NULL
GROUP BY identity
HAVING 10 * count(device_end_ns) >= 9 * count(*);

WITH kept AS (
    SELECT speaking.identity,
           sequence,
           sample.call,
           CASE WHEN coalesce(is_own, 0) THEN 0 ELSE coalesce(bytes, 0) END AS bytes,
           CASE WHEN timed_on_device.identity IS NULL THEN start_ns ELSE coalesce(device_start_ns, start_ns) END AS start_ns,
           end_ns AS returned_ns,
           CASE WHEN device_end_ns IS NULL THEN coalesce(completed_ns, 0)
                WHEN timed_on_device.identity IS NULL THEN 0
                ELSE device_end_ns END AS completed_ns,
           family IN ('collective', 'neighborhood') AND sample.call NOT LIKE '%\_init' ESCAPE '\' AS is_collective,
           bytes IS NULL OR bytes > coalesce(threshold_bytes, 64) AS is_large,
           coalesce(is_main, 1) AS is_main
    FROM sample
    JOIN speaking USING (world_rank, communicator)
    LEFT JOIN timed_on_device ON timed_on_device.identity = speaking.identity
    LEFT JOIN thread ON thread.world_rank = sample.world_rank AND thread.thread = sample.thread
    LEFT JOIN call ON call.name = sample.call
    LEFT JOIN control_size ON control_size.call = sample.call
    LEFT JOIN nonblocking ON nonblocking.call = sample.call
    LEFT JOIN bandwidth_rule ON bandwidth_rule.call = coalesce(nonblocking.blocking_call, sample.call)
    WHERE sequence IS NOT NULL AND ((sequence - 1) / 1024 + 1) & ((1 << min(sample_level, 62)) - 1) = 0
)
SELECT identity, sequence, call, bytes, start_ns,
       CASE WHEN is_collective AND is_large THEN max(returned_ns, completed_ns) ELSE returned_ns END AS end_ns,
       coalesce(is_collective AND is_large, 0) AS is_bulk,
       coalesce(is_collective AND NOT is_large AND is_main, 0) AS is_small
FROM kept
ORDER BY identity, sequence;
