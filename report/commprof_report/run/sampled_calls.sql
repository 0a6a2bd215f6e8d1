-- The sampled calls, in the order in which they were read.
SELECT rowid AS place, world_rank, thread, call, communicator, sequence, start_ns, end_ns, completed_ns, bytes, peer, root, region,
       device_start_ns, device_end_ns, is_shared, tag, number, signature,
       (1 << 61) + (object << 40) + object_sequence AS object_sequence, polled_since_ns, polled_ns
FROM sample;
