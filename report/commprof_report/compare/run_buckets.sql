-- The histogram of durations; the key as in run_rows.sql, for all ranks.
SELECT call, identity, CASE bandwidth WHEN 'own-size' THEN NULL ELSE bytes_high END AS bytes, memory_kind, timed AS measure, traffic,
       low_ns, coalesce(high_ns, 2 * low_ns) AS high_ns, sum(bucket.count) AS count
FROM chosen_cell
JOIN cell_traffic USING (cell)
JOIN bucket USING (cell)
JOIN bucket_bound USING (bucket)
WHERE family NOT IN ('setup', 'communicator') AND measure IN ('call', 'device')
GROUP BY call, identity, CASE bandwidth WHEN 'own-size' THEN NULL ELSE bytes_high END, memory_kind, timed, traffic, bucket.bucket
ORDER BY bucket.bucket;
