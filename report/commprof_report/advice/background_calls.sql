-- Which share of the time in each call on a communicator is on threads other than the main one?
SELECT call, identity, total(CASE WHEN NOT is_main THEN total_ns END) / nullif(total(total_ns), 0) AS share
FROM chosen_cell
JOIN thread USING (world_rank, thread)
WHERE is_call
GROUP BY call, identity;
