-- The exact time that each rank spent inside MPI, as far as the user chose, and in NCCL's operations on the device.
SELECT cell.world_rank, coalesce(call.library, 'mpi') = 'mpi' AS is_mpi, cell.call, coalesce(is_main, 1) AS is_main, sum(total_ns) AS total_ns
FROM cell
JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region)
JOIN selected_size ON cell.bytes BETWEEN low_bytes AND high_bytes
LEFT JOIN thread USING (world_rank, thread)
LEFT JOIN call ON call.name = cell.call
WHERE measure IN (CASE coalesce(call.library, 'mpi') WHEN 'nccl' THEN 'device' ELSE 'call' END, 'poll') AND coalesce(family, '') <> 'setup'
  AND cell.call IN (SELECT call FROM selected_call) AND identity IN (SELECT identity FROM selected_communicator)
  AND region_name IN (SELECT region_name FROM selected_region)
GROUP BY 1, 2, 3, 4;
