-- Where do times of NCCL's operations on the device come from, of ranks that say so?
SELECT DISTINCT value FROM fact
WHERE key = 'nccl.device_times' AND world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY value;
