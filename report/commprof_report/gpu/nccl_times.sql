-- From which source do the times of NCCL's operations on the device come, on ranks that record it?
SELECT DISTINCT value FROM fact
WHERE key = 'nccl.device_times' AND world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY value;
