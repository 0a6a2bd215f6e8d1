-- How long did each rank wait for others in each collective?
SELECT world_rank, start_ns, wait_ns FROM late_call ORDER BY world_rank, start_ns;
