-- Ranks some of whose activities came too late for their overlap sums and lasted longer, in total,
-- than :most_share of the time that is summed up for a device, with that total; null: not known.
WITH summed AS (
    SELECT world_rank, device, total(ns) AS traced_ns FROM gpu_busy GROUP BY world_rank, device
),
least AS (
    SELECT world_rank, min(traced_ns) AS traced_ns FROM summed GROUP BY world_rank
)
SELECT rank.world_rank, CAST(late.value AS INTEGER) AS late_ns
FROM rank
LEFT JOIN fact AS late ON late.world_rank = rank.world_rank AND late.key = 'gpu.late_ns'
LEFT JOIN least ON least.world_rank = rank.world_rank
WHERE gpu_late_records > 0
    AND (late.value IS NULL
         OR CAST(late.value AS INTEGER) > :most_share * coalesce(least.traced_ns, 0));
