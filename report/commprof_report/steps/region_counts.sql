-- How often was each rank in each region, and for how long, longest first?
SELECT world_rank, name, count(*) AS visits, sum(end_ns - begin_ns) AS time_ns
FROM region_span
JOIN region USING (world_rank, region)
WHERE end_ns > begin_ns
GROUP BY world_rank, thread, name
ORDER BY time_ns DESC;
