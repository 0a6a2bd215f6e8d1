-- Which GPUs did the ranks use? Ranks with one kernel_id run on one host, also in containers; those with one clock_id read one
-- CLOCK_MONOTONIC. Null: not known.
SELECT gpu_device.world_rank AS rank, host.value AS host, gpu_device.device, number, name, uuid,
       first_ns, last_ns, kernels, copies, sets,
       sms, communication_ns, communication_sm_ns, communication_most_sms, memory_bytes,
       coalesce(nullif(boot.value, ''), nullif(host.value, '')) AS kernel_id,
       nullif(boot.value, '') || ' ' || coalesce(zone.value, '') AS clock_id,
       min(start_monotonic_ns, 1 << 61) AS start_monotonic_ns,
       gpu_device.world_rank IN (SELECT world_rank FROM selected_rank) AS is_selected
FROM gpu_device
JOIN rank USING (world_rank)
LEFT JOIN fact AS host ON host.world_rank = gpu_device.world_rank AND host.key = 'host'
LEFT JOIN fact AS boot ON boot.world_rank = gpu_device.world_rank AND boot.key = 'boot_id'
LEFT JOIN fact AS zone ON zone.world_rank = gpu_device.world_rank AND zone.key = 'time_namespace'
ORDER BY gpu_device.world_rank, gpu_device.device;
