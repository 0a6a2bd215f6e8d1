-- Further messages of sampled calls; none as in sampled_calls.sql.
SELECT world_rank, thread, call, communicator, direction, coalesce(peer, none) AS peer, coalesce(tag, none) AS tag,
       coalesce(number, none) AS number, coalesce(bytes, none) AS bytes, start_ns, end_ns,
       coalesce(completed_ns, none) AS completed_ns
FROM (SELECT -(1 << 62) AS none)
CROSS JOIN sample_message;
