-- How much time did one rank spend in which calls? role: of the communicator, by its size; none: a
-- call without one, or a message.
SELECT cell, cell.call, coalesce(family, 'unknown') AS family,
       CASE WHEN cell.communicator = 0 THEN 'none' WHEN size = 1 THEN 'alone'
           WHEN size = world_size THEN 'world'
            WHEN size > 0 THEN 'part' ELSE 'other' END AS role,
       CASE measure WHEN 'poll' THEN 'call' ELSE measure END AS measure, bytes, count,
       CASE measure WHEN 'captured' THEN 0 ELSE volume_bytes END AS volume_bytes, total_ns, max_ns
FROM cell
JOIN rank USING (world_rank)
LEFT JOIN call ON call.name = cell.call
LEFT JOIN communicator USING (world_rank, communicator)
WHERE count > 0;
