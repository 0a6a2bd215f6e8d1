-- The cells that the filters leave, with names. What is captured has moved nothing yet.
-- timed: what the times of a cell are of.
SELECT cell, cell.world_rank, thread, cell.call, bytes, measure, memory_kind,
       region_name AS region, is_folded, count, total_ns, min_ns, max_ns, blocked_ns,
       CASE measure WHEN 'captured' THEN 0 ELSE volume_bytes END AS volume_bytes,
       CASE measure WHEN 'poll' THEN 'call' ELSE measure END AS timed, identity, label, size,
       coalesce(family, 'unknown') AS family, coalesce(library, 'mpi') AS library,
       coalesce(form, 'blocking') AS form, coalesce(bandwidth, 'unrated') AS bandwidth,
       coalesce(waits_for, 'nobody') AS waits_for
FROM cell JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region)
JOIN selected_size ON bytes BETWEEN low_bytes AND high_bytes LEFT JOIN call ON call.name = cell.call
WHERE cell.call IN selected_call AND cell.world_rank IN selected_rank
  AND identity IN selected_communicator AND region_name IN selected_region
  AND memory_kind GLOB :memory_kind
ORDER BY cell;
