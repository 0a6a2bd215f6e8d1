-- How many NCCL operations of each rank were timed on the device, and how long did they take, by call and communicator?
SELECT world_rank AS rank, call, coalesce(nullif(label, '-'), '') AS communicator, sum(count) AS count, sum(total_ns) AS total_ns, 'nccl' AS library
FROM chosen_cell
WHERE timed = 'device'
GROUP BY world_rank, call, label
ORDER BY world_rank, call, label;
