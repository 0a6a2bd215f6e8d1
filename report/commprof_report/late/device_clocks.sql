-- Error bound of each rank's GPU timestamps. Infinite: unknown.
SELECT world_rank,
    CASE WHEN count(clock_error_ns) = count(*) THEN max(clock_error_ns) ELSE 9e999 END AS error_ns
FROM gpu_tracing
GROUP BY world_rank;
