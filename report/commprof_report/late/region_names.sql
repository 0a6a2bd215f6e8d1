-- The names of regions.
SELECT world_rank, region, region_name AS name FROM region_of;
