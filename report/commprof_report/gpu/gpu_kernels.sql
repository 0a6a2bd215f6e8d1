-- Which kernels took the GPUs' time? One row per kernel, sorted by its time over all ranks and streams.
DELETE FROM grouped_activity;
INSERT INTO grouped_activity
SELECT dense_rank() OVER (ORDER BY name, is_communication), activity FROM chosen_activity WHERE kind = 'kernel';

WITH counted AS (
    SELECT row, name, is_communication, count(DISTINCT world_rank) AS ranks, sum(count) AS count,
           sum(CASE WHEN is_graph THEN count ELSE 0 END) AS graph_count, sum(total_ns) AS total_ns, min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM grouped_activity
    JOIN chosen_activity USING (activity)
    GROUP BY row
),
whole AS (
    SELECT total(total_ns) AS total_ns FROM counted
)
SELECT name AS kernel, -- gpu_activity.py makes kernel and demangled readable
       is_communication,
       ranks,
       count,
       graph_count,
       counted.total_ns,
       counted.total_ns * 1.0 / count AS mean_ns,
       min_ns,
       p50_ns,
       p99_ns,
       max_ns,
       counted.total_ns / nullif(whole.total_ns, 0) AS share,
       name AS demangled,
       name
FROM counted
JOIN whole
LEFT JOIN gpu_percentile USING (row)
ORDER BY counted.total_ns DESC, name, is_communication;
