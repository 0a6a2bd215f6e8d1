-- Which threads did each rank have?
SELECT world_rank, thread, name, is_main FROM thread;
