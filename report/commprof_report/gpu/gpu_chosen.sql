-- The kernels, copies and memsets of the selected ranks' GPUs. Created before the queries for kernels, copies and streams.
DROP TABLE IF EXISTS temp.chosen_activity;
CREATE TEMP TABLE chosen_activity AS
SELECT activity, gpu_activity.world_rank, stream, kind, coalesce(name, '') AS name, coalesce(is_communication, 0) AS is_communication,
       copy, is_graph, is_pageable, is_managed, bytes, count, volume_bytes, total_ns, min_ns, max_ns
FROM gpu_activity
LEFT JOIN gpu_kernel USING (world_rank, kernel)
WHERE gpu_activity.world_rank IN (SELECT world_rank FROM selected_rank) AND count > 0;

-- Percentiles of the groups of activities in table grouped_activity(row, activity), which each query fills itself; as view percentile has
-- them for calls.
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
spread AS (
    SELECT row, min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM grouped_activity
    JOIN chosen_activity USING (activity)
    GROUP BY row
),
running AS (
    SELECT row, max(low_ns, min_ns) AS low_ns, min(coalesce(high_ns, max_ns), max_ns) AS high_ns,
           100 * total(count) OVER (PARTITION BY row ORDER BY bucket) AS upto,
           100 * count AS own,
           total(count) OVER (PARTITION BY row) AS whole
    FROM summed
    JOIN spread USING (row)
    JOIN bucket_bound USING (bucket)
)
SELECT row,
       max(CASE WHEN upto - own < 50 * whole AND upto >= 50 * whole THEN low_ns + (high_ns - low_ns) * (50 * whole - upto + own) / own END) AS p50_ns,
       max(CASE WHEN upto - own < 99 * whole AND upto >= 99 * whole AND (100 - 99) * whole >= 100
                THEN low_ns + (high_ns - low_ns) * (99 * whole - upto + own) / own END) AS p99_ns
FROM running
GROUP BY row;
