-- When was the main thread of each rank in each region? Whatever was selected.
SELECT region.name, region_span.world_rank, begin_ns, end_ns
FROM region_span
JOIN region USING (world_rank, region)
LEFT JOIN thread USING (world_rank, thread)
WHERE coalesce(is_main, 1) AND end_ns > begin_ns
ORDER BY region.name, region_span.world_rank, begin_ns;
