-- The threads of each rank.
SELECT world_rank, thread, name, is_main FROM thread;
