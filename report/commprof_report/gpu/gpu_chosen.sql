-- The kernels, copies and memsets of the selected ranks' GPUs. Created before the queries for kernels, copies and streams.
DROP TABLE IF EXISTS temp.chosen_activity;
CREATE TEMP TABLE chosen_activity AS
SELECT activity, gpu_activity.world_rank, stream, kind, coalesce(name, '') AS name, coalesce(is_communication, 0) AS is_communication,
       copy, is_graph, is_pageable, is_managed, bytes, count, volume_bytes, total_ns, min_ns, max_ns
FROM gpu_activity
LEFT JOIN gpu_kernel USING (world_rank, kernel)
WHERE gpu_activity.world_rank IN (SELECT world_rank FROM selected_rank) AND count > 0;

-- Percentiles of the groups of activities in table grouped_activity(row, activity), which each query fills itself.
DROP TABLE IF EXISTS temp.grouped_activity;
CREATE TEMP TABLE grouped_activity (row INTEGER NOT NULL, activity INTEGER NOT NULL);
DROP VIEW IF EXISTS temp.gpu_percentile;
CREATE TEMP VIEW gpu_percentile AS
WITH summed AS (
    SELECT row, bucket, sum(gpu_bucket.count) AS count
    FROM grouped_activity
    JOIN gpu_bucket USING (activity)
    GROUP BY row, bucket
),
running AS (
    SELECT row, bucket, count,
           total(count) OVER (PARTITION BY row ORDER BY bucket) AS upto,
           total(count) OVER (PARTITION BY row) AS whole
    FROM summed
)
SELECT row,
       max(CASE WHEN 100 * (upto - count) < 50 * whole AND 100 * upto >= 50 * whole THEN middle_ns END) AS p50_ns,
       max(CASE WHEN 100 * (upto - count) < 99 * whole AND 100 * upto >= 99 * whole THEN middle_ns END) AS p99_ns
FROM running
LEFT JOIN bucket_middle USING (bucket)
GROUP BY row;
