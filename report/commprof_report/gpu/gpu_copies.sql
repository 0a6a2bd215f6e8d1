-- What was copied and set, in which direction, in which sizes, and how fast? One row per direction, kind of host memory and size class.
DELETE FROM grouped_activity;
INSERT INTO grouped_activity
SELECT dense_rank() OVER (ORDER BY kind, copy, is_pageable, is_managed, bytes), activity FROM chosen_activity WHERE kind <> 'kernel';

WITH counted AS (
    SELECT row, kind, copy, is_pageable, is_managed, bytes, count(DISTINCT world_rank) AS ranks, sum(count) AS count,
           sum(CASE WHEN is_graph THEN count ELSE 0 END) AS graph_count, sum(volume_bytes) AS volume_bytes, sum(total_ns) AS total_ns,
           min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM grouped_activity
    JOIN chosen_activity USING (activity)
    GROUP BY row
)
SELECT kind,
       copy,
       is_pageable,
       is_managed,
       CASE WHEN bytes > 1 THEN bytes / 2 + 1 ELSE bytes END AS bytes_low,
       bytes AS bytes_high,
       ranks,
       count,
       graph_count,
       volume_bytes,
       total_ns,
       total_ns * 1.0 / count AS mean_ns,
       min_ns,
       p50_ns,
       p99_ns,
       max_ns,
       volume_bytes * 1e9 / nullif(total_ns, 0) AS bytes_per_s
FROM counted
LEFT JOIN gpu_percentile USING (row)
ORDER BY kind, total(total_ns) OVER (PARTITION BY kind, copy, is_pageable, is_managed) DESC, copy, is_pageable, is_managed, bytes;
