-- The sampled calls.
SELECT world_rank, thread, call, region, start_ns, end_ns FROM sample;
