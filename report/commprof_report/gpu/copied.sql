-- How much did the GPUs copy to the host and back, as far as they were traced?
SELECT copy, sum(count) AS count, sum(volume_bytes) AS volume_bytes, sum(total_ns) AS total_ns
FROM gpu_activity
WHERE copy IN ('to device', 'to host') AND world_rank IN (SELECT world_rank FROM selected_rank)
GROUP BY copy
ORDER BY copy;
