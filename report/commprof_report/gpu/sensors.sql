-- What did the counters and sensors of each device say, by each rank that read them? Rates are those
-- between two readings; counters that began anew have none there. The clock is that of readings in
-- which the device was not idle.
WITH paired AS (
    SELECT world_rank, device, at_ns, clock_mhz, memory_used_bytes,
           is_idle, is_power_limited, is_heat_limited, is_hardware_limited,
           is_power_limited OR is_heat_limited OR is_hardware_limited AS is_limited,
           nullif(at_ns - lag(at_ns) OVER earlier, 0) AS span_ns,
           nvlink_sent_bytes - lag(nvlink_sent_bytes) OVER earlier AS nvlink_sent,
           nvlink_received_bytes - lag(nvlink_received_bytes) OVER earlier AS nvlink_received,
           pcie_sent_bytes - lag(pcie_sent_bytes) OVER earlier AS pcie_sent,
           pcie_received_bytes - lag(pcie_received_bytes) OVER earlier AS pcie_received
    FROM gpu_reading
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
    WINDOW earlier AS (PARTITION BY world_rank, device ORDER BY at_ns)
)
SELECT world_rank AS rank,
       device,
       count(*) AS readings,
       max(at_ns) - min(at_ns) AS span_ns,
       avg(clock_mhz) FILTER (WHERE NOT coalesce(is_idle, 0)) AS clock_mean_mhz,
       min(clock_mhz) FILTER (WHERE NOT coalesce(is_idle, 0)) AS clock_least_mhz,
       count(is_limited) AS limit_readings,
       avg(is_limited) AS throttled_share,
       avg(is_power_limited) AS power_share,
       avg(is_heat_limited) AS heat_share,
       avg(is_hardware_limited) AS hardware_share,
       max(memory_used_bytes) AS memory_most_bytes,
       total(nvlink_sent) FILTER (WHERE nvlink_sent >= 0) * 1e9
           / sum(span_ns) FILTER (WHERE nvlink_sent >= 0) AS nvlink_sent_bytes_per_s,
       max(nvlink_sent * 1e9 / span_ns) FILTER (WHERE nvlink_sent >= 0)
           AS nvlink_sent_most_bytes_per_s,
       total(nvlink_received) FILTER (WHERE nvlink_received >= 0) * 1e9
           / sum(span_ns) FILTER (WHERE nvlink_received >= 0) AS nvlink_received_bytes_per_s,
       max(nvlink_received * 1e9 / span_ns) FILTER (WHERE nvlink_received >= 0)
           AS nvlink_received_most_bytes_per_s,
       total(pcie_sent) FILTER (WHERE pcie_sent >= 0) * 1e9
           / sum(span_ns) FILTER (WHERE pcie_sent >= 0) AS pcie_sent_bytes_per_s,
       max(pcie_sent * 1e9 / span_ns) FILTER (WHERE pcie_sent >= 0) AS pcie_sent_most_bytes_per_s,
       total(pcie_received) FILTER (WHERE pcie_received >= 0) * 1e9
           / sum(span_ns) FILTER (WHERE pcie_received >= 0) AS pcie_received_bytes_per_s,
       max(pcie_received * 1e9 / span_ns) FILTER (WHERE pcie_received >= 0)
           AS pcie_received_most_bytes_per_s
FROM paired
GROUP BY world_rank, device
ORDER BY world_rank, device;
