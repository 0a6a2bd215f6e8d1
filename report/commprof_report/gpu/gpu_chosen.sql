-- The kernels, copies and memsets of the selected ranks' GPUs.
SELECT activity, gpu_activity.world_rank, stream, gpu_device.number AS device, context,
       gpu_stream.number, kind, coalesce(gpu_kernel.name, '') AS name,
       coalesce(is_communication, 0) AS is_communication,
       copy, is_graph, is_pageable, is_managed, bytes, count, volume_bytes, total_ns, min_ns, max_ns
FROM gpu_activity
LEFT JOIN gpu_kernel USING (world_rank, kernel)
LEFT JOIN gpu_stream USING (world_rank, stream)
LEFT JOIN gpu_device USING (world_rank, device)
WHERE gpu_activity.world_rank IN (SELECT world_rank FROM selected_rank) AND count > 0
ORDER BY activity;
