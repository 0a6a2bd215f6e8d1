-- Questions about nodes to `hvprof-report export --format parquet --output tables RUN`, for DuckDB in
-- the folder of `tables`.

-- Which nodes wait least in Allreduce, so that the others wait for them?
SELECT node, sum(total_ns) / 1e9 AS inside_s
FROM read_parquet('tables/cell/*/*.parquet', hive_partitioning = true)
WHERE call = 'MPI_Allreduce' AND measure = 'call'
GROUP BY node
ORDER BY inside_s;

-- For which nodes do the others wait in sampled collectives?
SELECT node, count(*) AS times_last, sum(waited_ns) / 1e9 AS others_waited_s
FROM 'tables/collectives.parquet' AS collective
JOIN read_parquet('tables/rank/*/*.parquet', hive_partitioning = true) AS rank
    ON rank.world_rank = collective.last_rank
GROUP BY node
ORDER BY others_waited_s DESC;

-- Which calls move most bytes from each node?
SELECT node, call, sum(count) AS calls, sum(volume_bytes) / 1e9 AS volume_gb
FROM read_parquet('tables/cell/*/*.parquet', hive_partitioning = true)
WHERE measure = 'call'
GROUP BY node, call
ORDER BY volume_gb DESC
LIMIT 20;
