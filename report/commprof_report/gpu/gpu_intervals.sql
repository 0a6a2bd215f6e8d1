-- Activities of GPUs. The states are those of gpu_busy.sql.
SELECT gpu_sample.world_rank,
       device,
       CASE WHEN kind <> 'kernel' THEN 4 WHEN coalesce(is_communication, 0) THEN 2 ELSE 1 END AS state,
       start_ns,
       end_ns
FROM gpu_sample
JOIN gpu_stream ON gpu_stream.world_rank = gpu_sample.world_rank AND gpu_stream.stream = gpu_sample.stream
LEFT JOIN gpu_kernel
       ON gpu_kernel.world_rank = gpu_sample.world_rank AND gpu_kernel.kernel = gpu_sample.kernel;
