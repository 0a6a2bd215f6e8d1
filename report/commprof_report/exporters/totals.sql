-- How many calls did each rank make on each communicator, by function, with how many bytes, and how long did they take?
SELECT world_rank AS rank, call, coalesce(nullif(label, '-'), '') AS communicator, sum(count) AS count, sum(volume_bytes) AS volume_bytes,
       sum(total_ns) AS total_ns, library
FROM chosen_cell
WHERE is_call
GROUP BY world_rank, call, label
ORDER BY world_rank, call, label;
