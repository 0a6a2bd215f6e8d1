-- Which GPUs did the selected ranks use?
SELECT gpu_device.world_rank AS rank,
       host.value AS host,
       gpu_device.device,
       number,
       name,
       uuid,
       first_ns,
       last_ns,
       kernels,
       copies,
       sets
FROM gpu_device
LEFT JOIN fact AS host ON host.world_rank = gpu_device.world_rank AND host.key = 'host'
WHERE gpu_device.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY gpu_device.world_rank, gpu_device.device;
