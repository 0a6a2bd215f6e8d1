-- How long did each rank wait for others, collective by collective?
SELECT world_rank, start_ns, wait_ns FROM late_call ORDER BY world_rank, start_ns;
