-- How much time did each rank spend in each call? (For the picture of `ranks`.)
SELECT world_rank AS rank, call, sum(total_ns) AS total_ns
FROM chosen_cell
WHERE NOT is_completion AND family <> 'setup'
GROUP BY world_rank, call
ORDER BY total(sum(total_ns)) OVER (PARTITION BY call) DESC, call, world_rank;
