-- How many ranks make each call on a communicator, and which share of its time is on threads other than the main one?
SELECT cell.call, identity, label, count(DISTINCT cell.world_rank) AS ranks,
       total(CASE WHEN NOT is_main THEN spent_ns END) / nullif(total(spent_ns), 0) AS beside_main
FROM (
    SELECT *,
           CASE WHEN measure IN ('call', 'poll', 'captured') THEN total_ns END AS spent_ns FROM cell
) AS cell
JOIN communicator_of USING (world_rank, communicator)
LEFT JOIN thread USING (world_rank, thread)
WHERE cell.call IN (SELECT call FROM selected_call)
  AND cell.world_rank IN (SELECT world_rank FROM selected_rank)
  AND identity IN (SELECT identity FROM selected_communicator)
GROUP BY cell.call, identity;
