-- The histogram of durations of each call, communicator, memory kind and exact size, over all selected ranks; for NCCL on the device.
SELECT call, identity, memory_kind, bytes_high AS bytes, bucket.bucket, low_ns, high_ns, sum(bucket.count) AS count
FROM chosen_cell
JOIN bucket USING (cell)
JOIN bucket_bound USING (bucket)
WHERE timed = CASE library WHEN 'nccl' THEN 'device' ELSE 'call' END AND NOT is_folded
GROUP BY call, identity, memory_kind, bytes_high, bucket.bucket
ORDER BY call, identity, memory_kind, bytes_high, bucket.bucket;
