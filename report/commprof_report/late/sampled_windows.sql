-- When were all messages of each rank sampled, by some thread at least?
SELECT world_rank, begin_ns, end_ns FROM sample_window ORDER BY world_rank, begin_ns;
