-- The percentiles of each rank, of the cells that durations.sql has left.
SELECT row AS rank, p50_ns, p95_ns, p99_ns FROM percentile;
