-- How often, and for how long, were the threads of each rank in each region, in the sampled time?
SELECT name AS region, region_span.world_rank, count(*) AS visits, sum(end_ns - begin_ns) AS span_ns
FROM region_span
JOIN region USING (world_rank, region)
GROUP BY name, region_span.world_rank;
