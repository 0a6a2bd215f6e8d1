-- Ten questions to a database that `hvprof-report export --format sqlite --output merged.db RUN` has
-- written: sqlite3 merged.db <docs/queries.sql, or one at a time, also in pandas and DuckDB.

-- 1. The calls that take the most time.
SELECT call, sum(count) AS calls, sum(total_ns) / 1e9 AS seconds
FROM sizes
WHERE measure = 'call' AND family <> 'setup'
GROUP BY call
ORDER BY seconds DESC;

-- 2. Sizes whose slow calls are far from the median: waiting for a late rank, or a network that
-- varies.
SELECT call, communicator, bytes, p50_ns, p99_ns, p99_ns / p50_ns AS tail
FROM percentiles
WHERE p99_ns IS NOT NULL
ORDER BY tail DESC
LIMIT 10;

-- 3. The ranks that arrive last at collectives in which all wait for all, and how long the
-- others wait for them. `late` also scales this to all calls, adds waiting for progress, and
-- goes on to the rank that made the last one late.
SELECT last_rank, count(*) AS collectives, sum(waited_ns) / 1e9 AS seconds
FROM collectives
WHERE waited_ns IS NOT NULL
GROUP BY last_rank
ORDER BY seconds DESC;

-- 4. Time inside MPI by host.
SELECT host, sum(total_ns) / 1e9 AS seconds
FROM named_cell
WHERE library = 'mpi' AND measure IN ('call', 'poll') AND family <> 'setup'
GROUP BY host
ORDER BY seconds DESC;

-- 5. The bytes that each communicator moves.
SELECT communicator, sum(count) AS calls, sum(volume_bytes) / 1e9 AS gigabytes
FROM sizes
WHERE measure = 'call'
GROUP BY communicator
ORDER BY gigabytes DESC;

-- 6. The longest single calls, with the time at which they began.
SELECT world_rank, call, communicator, bytes, begin_ns / 1e9 AS begin_s, duration_ns
FROM calls
ORDER BY duration_ns DESC, world_rank
LIMIT 10;

-- 7. The course of a run: sampled calls and their time, second by second.
SELECT begin_ns - begin_ns % 1000000000 AS second_ns, count(*) AS calls, sum(duration_ns) / 1e9 AS seconds
FROM calls
GROUP BY second_ns
ORDER BY second_ns;

-- 8. The bytes that each rank sends to each other one.
SELECT world_rank, peer, sum(count) AS messages, sum(bytes) AS bytes
FROM peer
WHERE direction = 'sent'
GROUP BY world_rank, peer
ORDER BY bytes DESC, world_rank, peer;

-- 9. The histogram of a call, all sizes and ranks together.
SELECT low_ns, high_ns, sum(bucket.count) AS calls
FROM bucket
JOIN named_cell USING (cell)
JOIN bucket_bound USING (bucket)
WHERE call = 'MPI_Allreduce' AND measure = 'call'
GROUP BY low_ns, high_ns
ORDER BY low_ns;

-- 10. Do all ranks run with the same settings? Facts that differ.
SELECT key, count(DISTINCT value) AS different_values
FROM fact
GROUP BY key
HAVING count(DISTINCT value) > 1
ORDER BY key;
