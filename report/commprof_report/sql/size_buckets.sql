-- The latency histogram of each call, communicator, place and exact size, over all chosen ranks.
SELECT call, identity, place, bytes_high AS bytes, bucket.bucket, low_ns, high_ns, sum(bucket.count) AS count
FROM chosen_cell
JOIN bucket USING (cell)
JOIN bucket_bound USING (bucket)
WHERE NOT is_completion AND NOT is_folded
GROUP BY call, identity, place, bytes_high, bucket.bucket
ORDER BY call, identity, place, bytes_high, bucket.bucket;
