-- The collectives in which steps are sought. For each communicator: the samples of its lowest rank that has any, as far as all such ranks
-- have sampled the same collectives. A call's size is compared between steps unless each rank has its own size (v-variants). NCCL
-- operations have device times if nine in ten of the communicator's have them (with intermittent tracing, steps would seem long and
-- short); otherwise the time of enqueueing. A small nonblocking collective ends with its call, so that it does not hide a pause in which the rank computes. Small
-- collectives of threads other than the main one are a framework's control messages and are ignored; of one that negotiates, those that are
-- control by what they are (traffic_class.sql).
DROP TABLE IF EXISTS temp.speaking;
CREATE TEMP TABLE speaking (
    world_rank INTEGER, communicator INTEGER, identity TEXT NOT NULL, ranks INTEGER NOT NULL, PRIMARY KEY (world_rank, communicator)
);
INSERT INTO speaking
SELECT min(world_rank), communicator, identity, count(*)
FROM (SELECT DISTINCT world_rank, communicator FROM sample WHERE sequence IS NOT NULL)
JOIN communicator USING (world_rank, communicator)
WHERE communicator > 1 AND size + remote_size > 1
GROUP BY identity;

DROP TABLE IF EXISTS temp.common;
CREATE TEMP TABLE common (identity TEXT, sequence INTEGER, PRIMARY KEY (identity, sequence)) WITHOUT ROWID;
INSERT INTO common
SELECT speaking.identity, sequence
FROM sample
JOIN communicator USING (world_rank, communicator)
JOIN speaking ON speaking.identity = communicator.identity
WHERE sequence IS NOT NULL
GROUP BY speaking.identity, sequence
HAVING count(*) >= ranks;

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
           CASE WHEN coalesce(is_own, 0) THEN 0 ELSE coalesce(sample.bytes, 0) END AS bytes,
           CASE WHEN timed_on_device.identity IS NULL THEN start_ns ELSE coalesce(device_start_ns, start_ns) END AS start_ns,
           end_ns AS returned_ns,
           CASE WHEN device_end_ns IS NULL THEN coalesce(completed_ns, 0)
                WHEN timed_on_device.identity IS NULL THEN 0
                ELSE device_end_ns END AS completed_ns,
           family IN ('collective', 'neighborhood') AND call.form <> 'persistent' AS is_collective,
           coalesce(NOT is_control, sample.bytes IS NULL OR sample.bytes > coalesce(threshold_bytes, 64)) AS is_large,
           coalesce(is_main, 1) AS is_main,
           negotiating.thread IS NOT NULL AS is_negotiated
    FROM sample
    JOIN speaking USING (world_rank, communicator)
    LEFT JOIN timed_on_device ON timed_on_device.identity = speaking.identity
    LEFT JOIN thread ON thread.world_rank = sample.world_rank AND thread.thread = sample.thread
    LEFT JOIN call ON call.name = sample.call
    LEFT JOIN control_size ON control_size.call = sample.call
    LEFT JOIN rated_call ON rated_call.call = sample.call
    LEFT JOIN negotiating ON negotiating.world_rank = sample.world_rank AND negotiating.thread = sample.thread
    LEFT JOIN told_sample ON told_sample.world_rank = sample.world_rank AND told_sample.thread = sample.thread
                         AND told_sample.call = sample.call AND told_sample.bytes = sample.bytes AND told_sample.signature = sample.signature
    WHERE sequence IS NOT NULL AND (speaking.identity, sequence) IN (SELECT identity, sequence FROM common)
)
SELECT identity, sequence, call, bytes, start_ns,
       CASE WHEN is_collective AND is_large THEN max(returned_ns, completed_ns) ELSE returned_ns END AS end_ns,
       coalesce(is_collective AND is_large, 0) AS is_bulk,
       coalesce(is_collective AND NOT is_large AND is_main, 0) AS is_small,
       is_negotiated
FROM sampled
ORDER BY identity, sequence;
