-- When was each rank in the region of this name? On the thread that visited it most often.
WITH visited AS (
    SELECT region_span.world_rank, thread, begin_ns, end_ns, count(*) OVER (PARTITION BY region_span.world_rank, thread) AS visits
    FROM region_span
    JOIN region USING (world_rank, region)
    WHERE region.name = :region_name AND end_ns > begin_ns
),
chosen AS (
    SELECT world_rank, thread, row_number() OVER (PARTITION BY world_rank ORDER BY visits DESC, thread) AS place FROM visited
)
SELECT visited.world_rank, begin_ns, end_ns, thread
FROM visited
JOIN chosen USING (world_rank, thread)
WHERE place = 1
ORDER BY visited.world_rank, begin_ns;
