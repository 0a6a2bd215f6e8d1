-- How long did each MPI call of the timeline wait, and for whom? By its begin on the run's axis. Of NCCL's operations: by sequence.
DROP TABLE IF EXISTS temp.trace_wait;
CREATE TEMP TABLE trace_wait AS
SELECT trace_split.world_rank, start_ns, max(wait_ns) AS wait_ns, last_rank, is_estimate
FROM trace_split
JOIN run_communicator USING (identity)
WHERE library = 'mpi'
GROUP BY trace_split.world_rank, start_ns;
CREATE INDEX temp.trace_wait_of_rank ON trace_wait (world_rank, start_ns);
-- Which thread of the rank that arrived last then began its call? Not of estimates: their waits end when no rank arrives.
DROP TABLE IF EXISTS temp.trace_last;
CREATE TEMP TABLE trace_last AS
SELECT DISTINCT last_rank AS world_rank, start_ns + wait_ns AS start_ns
FROM trace_wait
WHERE wait_ns > 0 AND NOT is_estimate AND last_rank <> world_rank;
CREATE INDEX temp.trace_last_of_rank ON trace_last (world_rank, start_ns);
DROP TABLE IF EXISTS temp.trace_arrival;
CREATE TEMP TABLE trace_arrival AS
SELECT trace_last.world_rank, trace_last.start_ns, min(thread) AS thread
FROM sample
CROSS JOIN trace_last ON trace_last.world_rank = sample.world_rank AND trace_last.start_ns = aligned_ns(sample.world_rank, sample.start_ns)
GROUP BY trace_last.world_rank, trace_last.start_ns;
CREATE INDEX temp.trace_arrival_of_rank ON trace_arrival (world_rank, start_ns);
CREATE INDEX temp.trace_split_of_rank ON trace_split (world_rank, identity, sequence);
