-- The sampled calls, in the order in which they were read. none: a number that nothing else has (columns.NONE).
SELECT world_rank, thread, call, communicator, coalesce(sequence, none) AS sequence, start_ns, end_ns,
       coalesce(completed_ns, none) AS completed_ns, coalesce(bytes, none) AS bytes, coalesce(peer, none) AS peer,
       coalesce(root, none) AS root, region, coalesce(device_start_ns, none) AS device_start_ns,
       coalesce(device_end_ns, none) AS device_end_ns, coalesce(is_shared, 0) AS is_shared, coalesce(tag, none) AS tag,
       coalesce(number, none) AS number, coalesce(signature, none) AS signature,
       coalesce((1 << 61) + (object << 40) + object_sequence, none) AS object_sequence,
       coalesce(polled_since_ns, none) AS polled_since_ns, coalesce(polled_ns, none) AS polled_ns
FROM (SELECT -(1 << 62) AS none)
CROSS JOIN sample;
