-- The counters of each rank with names, a row for each of their values.
WITH summed AS (
    SELECT world_rank, host, thread, call, family, library, communicator, region, bytes, is_folded, measure, memory_kind, sum(count) AS count,
           sum(volume_bytes) AS volume_bytes, sum(total_ns) AS total_ns, min(min_ns) AS min_ns, max(max_ns) AS max_ns,
           sum(blocked_ns) AS blocked_ns
    FROM named_cell
    WHERE count > 0
    GROUP BY world_rank, thread, call, identity, region, bytes, is_folded, measure, memory_kind
)
SELECT run_id, world_rank, host, thread, call, family, library, communicator, region, bytes, is_folded, measure, memory_kind, quantity,
       CASE quantity WHEN 'count' THEN count WHEN 'volume_bytes' THEN volume_bytes WHEN 'total_ns' THEN total_ns WHEN 'min_ns' THEN min_ns
                     WHEN 'max_ns' THEN max_ns WHEN 'blocked_ns' THEN blocked_ns END AS value
FROM summed
JOIN (SELECT world_rank, run_id FROM rank) USING (world_rank)
CROSS JOIN (SELECT 1 AS place, 'count' AS quantity UNION ALL SELECT 2, 'volume_bytes' UNION ALL SELECT 3, 'total_ns'
            UNION ALL SELECT 4, 'min_ns' UNION ALL SELECT 5, 'max_ns' UNION ALL SELECT 6, 'blocked_ns')
WHERE measure = 'completion' OR quantity <> 'blocked_ns'
ORDER BY world_rank, thread, call, communicator, region, bytes, is_folded, measure, memory_kind, place;
