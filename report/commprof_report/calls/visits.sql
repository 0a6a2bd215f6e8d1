-- When was each thread in each region? Whatever was selected.
SELECT region.name, region_span.world_rank, thread, coalesce(is_main, 1) AS is_main, begin_ns,
       end_ns, end_ns - begin_ns AS span_ns
FROM region_span JOIN region USING (world_rank, region) LEFT JOIN thread USING (world_rank, thread)
ORDER BY region.name, region_span.world_rank, begin_ns;
