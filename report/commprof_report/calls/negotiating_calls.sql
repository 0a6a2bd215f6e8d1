-- The sampled collectives of a thread that negotiates, in order of time: of the lowest rank that has one.
SELECT sample.world_rank,
       sample.thread,
       identity,
       sequence,
       sample.call,
       start_ns,
       call.library = 'nccl' OR NOT coalesce(is_control, coalesce(sample.bytes, 0) <= coalesce(threshold_bytes, 64)) AS is_bulk
FROM sample
JOIN communicator USING (world_rank, communicator)
JOIN call ON call.name = sample.call
LEFT JOIN control_size ON control_size.call = sample.call
LEFT JOIN told_sample ON told_sample.world_rank = sample.world_rank AND told_sample.thread = sample.thread
                     AND told_sample.call = sample.call AND told_sample.bytes = sample.bytes AND told_sample.signature = sample.signature
WHERE (sample.world_rank, sample.thread) = (SELECT world_rank, thread FROM negotiating ORDER BY world_rank, thread LIMIT 1)
  AND sequence IS NOT NULL AND family IN ('collective', 'neighborhood')
ORDER BY start_ns;
