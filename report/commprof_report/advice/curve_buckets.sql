-- The histogram of durations of each call, communicator, side (table curve_side of curve_sides.sql), memory kind and exact size; for NCCL
-- on the device.
SELECT call, identity, coalesce(side, '') AS side, memory_kind, bytes_high AS bytes, low_ns, high_ns, sum(bucket.count) AS count
FROM chosen_cell
JOIN bucket USING (cell)
JOIN bucket_bound USING (bucket)
LEFT JOIN curve_side USING (world_rank, identity, call)
WHERE timed = CASE library WHEN 'nccl' THEN 'device' ELSE 'call' END AND NOT is_folded
GROUP BY call, identity, side, memory_kind, bytes_high, bucket.bucket;
