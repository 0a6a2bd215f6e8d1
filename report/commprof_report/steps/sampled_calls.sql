-- The sampled calls.
SELECT world_rank, thread, call, communicator, sequence, start_ns, end_ns, completed_ns, bytes, signature, device_start_ns, device_end_ns,
       is_shared
FROM sample;
