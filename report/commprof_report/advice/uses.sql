-- How many ranks make each call on a communicator, and which share of its time is on threads other than the main one?
SELECT call, identity, label, count(DISTINCT chosen_cell.world_rank) AS ranks,
       total(CASE WHEN is_call AND NOT is_main THEN total_ns END) / nullif(total(CASE WHEN is_call THEN total_ns END), 0) AS beside_main
FROM chosen_cell
LEFT JOIN thread USING (world_rank, thread)
GROUP BY call, identity;
