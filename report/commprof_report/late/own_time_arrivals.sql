-- When did each rank arrive at the split collectives in which not all wait for all, and when had it returned from the collective before on
-- that communicator? NCCL's: on the device.
WITH rooted AS (
    SELECT DISTINCT identity, sequence FROM late_call JOIN synchronizing USING (call) WHERE kind <> 'all' AND sequence > 0
),
come AS (
    SELECT identity, sequence, sample.call, library, world_rank,
           aligned_ns(world_rank, CASE library WHEN 'nccl' THEN device_start_ns ELSE start_ns END) AS arrival_ns,
           lag(aligned_ns(world_rank, CASE library WHEN 'nccl' THEN device_end_ns ELSE end_ns END))
               OVER (PARTITION BY identity, world_rank ORDER BY sequence) AS since_ns
    FROM sample
    JOIN communicator USING (world_rank, communicator)
    WHERE sequence IS NOT NULL AND identity IN (SELECT identity FROM rooted)
)
SELECT identity, sequence, call, library, world_rank, arrival_ns, since_ns
FROM come
JOIN rooted USING (identity, sequence)
ORDER BY identity, sequence;
