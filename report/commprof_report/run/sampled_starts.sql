-- The persistent collectives that sampled calls have started; none as in sampled_calls.sql.
SELECT world_rank, thread, call, communicator, operation, number, coalesce(root, none) AS root, coalesce(bytes, none) AS bytes,
       start_ns, end_ns, coalesce(completed_ns, none) AS completed_ns
FROM (SELECT -(1 << 62) AS none)
CROSS JOIN sample_start;
