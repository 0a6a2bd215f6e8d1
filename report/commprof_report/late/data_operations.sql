-- When did the other threads of a rank that has waiting visits move data? Not control, which a
-- thread that negotiates is in all the time. NCCL's operations by their time on the device, if known.
SELECT sample.world_rank, coalesce(device_start_ns, start_ns) AS begin_ns, coalesce(device_end_ns, end_ns)
FROM sample
JOIN (SELECT DISTINCT world_rank, thread FROM wait_visit) AS waiting
  ON waiting.world_rank = sample.world_rank AND waiting.thread <> sample.thread
JOIN call ON call.name = sample.call
LEFT JOIN control_size ON control_size.call = sample.call
LEFT JOIN told_sample ON told_sample.world_rank = sample.world_rank AND told_sample.thread = sample.thread
                     AND told_sample.call = sample.call AND told_sample.bytes = sample.bytes AND told_sample.signature = sample.signature
WHERE family IN ('collective', 'neighborhood', 'point-to-point', 'completion')
  AND (library = 'nccl' OR family = 'completion' OR NOT coalesce(is_control, coalesce(sample.bytes, 0) <= coalesce(threshold_bytes, :control_bytes)))
ORDER BY sample.world_rank, begin_ns;
