-- The kernels, copies and memsets of the selected ranks' GPUs.
SELECT activity, gpu_activity.world_rank, kind, coalesce(name, '') AS name, coalesce(is_communication, 0) AS is_communication,
       copy, is_graph, is_pageable, is_managed, bytes, count, volume_bytes, total_ns, min_ns, max_ns
FROM gpu_activity
LEFT JOIN gpu_kernel USING (world_rank, kernel)
WHERE gpu_activity.world_rank IN (SELECT world_rank FROM selected_rank) AND count > 0
ORDER BY activity;
