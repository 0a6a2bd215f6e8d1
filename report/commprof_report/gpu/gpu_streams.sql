-- What ran on which stream? Times are sums of durations.
SELECT gpu_stream.world_rank AS rank,
       gpu_device.number AS device,
       gpu_stream.stream,
       context,
       gpu_stream.number,
       coalesce(sum(CASE WHEN kind = 'kernel' AND is_communication IS NOT 1 THEN count END), 0) AS computing_kernels,
       coalesce(sum(CASE WHEN kind = 'kernel' AND is_communication THEN count END), 0) AS communicating_kernels,
       coalesce(sum(CASE WHEN kind = 'copy' THEN count END), 0) AS copies,
       coalesce(sum(CASE WHEN kind = 'memset' THEN count END), 0) AS sets,
       coalesce(sum(CASE WHEN kind = 'kernel' AND is_communication IS NOT 1 THEN total_ns END), 0) AS computing_ns,
       coalesce(sum(CASE WHEN kind = 'kernel' AND is_communication THEN total_ns END), 0) AS communicating_ns,
       coalesce(sum(CASE WHEN kind <> 'kernel' THEN total_ns END), 0) AS copying_ns,
       coalesce(sum(volume_bytes), 0) AS volume_bytes
FROM gpu_stream
LEFT JOIN gpu_device USING (world_rank, device)
LEFT JOIN gpu_activity ON gpu_activity.world_rank = gpu_stream.world_rank AND gpu_activity.stream = gpu_stream.stream AND count > 0
LEFT JOIN gpu_kernel ON gpu_kernel.world_rank = gpu_activity.world_rank AND gpu_kernel.kernel = gpu_activity.kernel
WHERE gpu_stream.world_rank IN (SELECT world_rank FROM selected_rank)
GROUP BY gpu_stream.world_rank, gpu_stream.stream
ORDER BY coalesce(sum(total_ns), 0) DESC, gpu_stream.world_rank, gpu_stream.stream;
