-- How long did each MPI call of the timeline wait, and for whom? By its begin on the run's axis. Of NCCL's operations: by sequence.
DROP TABLE IF EXISTS temp.trace_wait;
CREATE TEMP TABLE trace_wait AS
SELECT late_call.world_rank, start_ns, max(wait_ns) AS wait_ns, last_rank, is_estimate
FROM late_call
JOIN run_communicator USING (identity)
WHERE library = 'mpi'
GROUP BY late_call.world_rank, start_ns;
CREATE INDEX temp.trace_wait_of_rank ON trace_wait (world_rank, start_ns);
CREATE INDEX temp.late_call_of_rank ON late_call (world_rank, identity, sequence);
