-- How are the durations of one call at one message size (or in a range of sizes) distributed? One row per histogram bucket in use.
WITH summed AS (
    SELECT bucket, sum(bucket.count) AS count, max(max_ns) AS max_ns
    FROM chosen_cell
    JOIN bucket USING (cell)
    WHERE call = :call
      AND timed = :measure
      AND (:bytes_low IS NULL OR bytes_low >= :bytes_low)
      AND (:bytes_high IS NULL OR bytes_high <= :bytes_high)
    GROUP BY bucket
)
SELECT :call AS call,
       :bytes_low AS bytes_low,
       :bytes_high AS bytes_high,
       low_ns,
       coalesce(high_ns, max_ns) AS high_ns,
       count,
       count / total(count) OVER () AS share,
       total(count) OVER (ORDER BY bucket) / total(count) OVER () AS cumulative_share,
       :measure AS measure,
       NULL AS density -- latency.py: SQLite may lack logarithms
FROM summed
JOIN bucket_bound USING (bucket)
ORDER BY bucket;
