-- The times in which all calls of a thread are sampled, in order.
SELECT world_rank, thread, begin_ns, end_ns FROM sample_window ORDER BY world_rank, thread, begin_ns;
