-- All cells, with names. What is captured has moved nothing yet. timed: what the times of a cell
-- are of.
SELECT cell, cell.world_rank, cell.thread, cell.call, bytes, measure, memory_kind,
       region_name AS region, is_folded, count, total_ns, min_ns, max_ns, blocked_ns,
       CASE measure WHEN 'captured' THEN 0 ELSE volume_bytes END AS volume_bytes,
       CASE measure WHEN 'poll' THEN 'call' ELSE measure END AS timed, identity, label, size,
       coalesce(family, 'unknown') AS family, coalesce(library, 'mpi') AS library,
       coalesce(form, 'blocking') AS form, coalesce(bandwidth, 'unrated') AS bandwidth,
       coalesce(waits_for, 'nobody') AS waits_for, coalesce(is_main, 1) AS is_main
FROM cell JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region) LEFT JOIN thread USING (world_rank, thread)
LEFT JOIN call ON call.name = cell.call
ORDER BY cell;
