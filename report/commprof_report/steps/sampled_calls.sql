-- The sampled calls of each rank, in order of time.
SELECT world_rank, thread, call, communicator, sequence, start_ns, end_ns, completed_ns, bytes, signature, device_start_ns, device_end_ns,
       is_shared
FROM sample
ORDER BY world_rank, start_ns, end_ns;
