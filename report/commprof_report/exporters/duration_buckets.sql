-- How many calls of each rank lasted no longer than each bound, 4^5 ns (1.02 us) to 4^19 ns (275 s)? The bounds are also bounds of
-- buckets, so the counts are exact. One row per rank, call and bound; null: no bound.
WITH RECURSIVE bound(exponent) AS (SELECT 5 UNION ALL SELECT exponent + 1 FROM bound WHERE exponent < 19),
made AS (
    SELECT world_rank, call, bucket.bucket, sum(bucket.count) AS count
    FROM chosen_cell
    JOIN bucket USING (cell)
    WHERE is_call
    GROUP BY world_rank, call, bucket.bucket
),
spent AS (
    SELECT world_rank, call, sum(total_ns) AS total_ns FROM chosen_cell WHERE is_call GROUP BY world_rank, call
),
bounded AS (
    SELECT 1 << (2 * exponent) AS bound_ns FROM bound UNION ALL SELECT NULL
)
SELECT world_rank AS rank, call, bound_ns,
       sum(CASE WHEN bound_ns IS NULL OR high_ns <= bound_ns THEN count ELSE 0 END) AS count,
       total_ns
FROM made
JOIN bucket_bound USING (bucket)
JOIN spent USING (world_rank, call)
CROSS JOIN bounded
GROUP BY world_rank, call, bound_ns
ORDER BY world_rank, call, bound_ns IS NULL, bound_ns;
