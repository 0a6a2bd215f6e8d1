-- When was each thread in the region of this name?
SELECT world_rank, thread, begin_ns, end_ns
FROM region_span
JOIN region USING (world_rank, region)
WHERE name = :region_name AND end_ns > begin_ns
ORDER BY world_rank, begin_ns;
