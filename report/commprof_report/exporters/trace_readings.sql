-- What sensors of GPUs said, in a timeline.
SELECT world_rank AS rank, device, at_ns, clock_mhz, memory_used_bytes,
       is_power_limited OR is_heat_limited OR is_hardware_limited AS is_throttled,
       nvlink_sent_bytes, nvlink_received_bytes, pcie_sent_bytes, pcie_received_bytes
FROM gpu_reading
ORDER BY world_rank, device, at_ns;
