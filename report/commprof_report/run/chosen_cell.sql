-- Which cells did the user select, with their communicator in terms of the whole run? timed: what their times measure: 'call' (including
-- polls), 'completion'; for NCCL also 'device', and 'captured', which has moved nothing yet. is_call: 1 for calls.
CREATE TEMP VIEW chosen_cell AS
SELECT cell.world_rank, cell.thread, cell.call, coalesce(call.family, 'unknown') AS family, coalesce(call.library, 'mpi') AS library,
       identity, label, CASE measure WHEN 'poll' THEN 'call' ELSE measure END AS timed, measure IN ('call', 'poll', 'captured') AS is_call,
       total_ns
FROM cell
JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region)
JOIN size_bin ON size_bin.bytes = cell.bytes AND size_bin.is_folded = cell.is_folded
LEFT JOIN call ON call.name = cell.call
WHERE cell.call IN (SELECT call FROM selected_call)
  AND cell.world_rank IN (SELECT world_rank FROM selected_rank)
  AND identity IN (SELECT identity FROM selected_communicator)
  AND region_name IN (SELECT region_name FROM selected_region)
  AND memory_kind IN (SELECT memory_kind FROM selected_memory_kind);

-- The range of sizes that the user selected, for single calls; null: no bound.
CREATE TEMP TABLE selected_size AS SELECT :low_bytes AS low_bytes, :high_bytes AS high_bytes;
