-- How long was each rank in each region, without the regions inside it and without MPI?
WITH spent AS (
    SELECT world_rank, region, end_ns - begin_ns AS ns FROM region_span
    UNION ALL
    SELECT outer_region.world_rank, outer_region.region, begin_ns - end_ns
    FROM region_span
    JOIN region AS inner_region USING (world_rank, region)
    JOIN region AS outer_region
      ON outer_region.world_rank = inner_region.world_rank
     AND outer_region.name = rtrim(rtrim(inner_region.name, replace(inner_region.name, '/', '')), '/')
    UNION ALL
    SELECT world_rank, region, start_ns - end_ns
    FROM sample
    LEFT JOIN call ON call.name = sample.call
    WHERE region > 0 AND coalesce(library, 'mpi') = 'mpi'
)
SELECT world_rank, name, total(ns) AS outside_ns
FROM spent
JOIN region USING (world_rank, region)
GROUP BY world_rank, name
ORDER BY name, world_rank;
