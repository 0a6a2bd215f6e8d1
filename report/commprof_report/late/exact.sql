-- The exact time of the calls that the user chose and in which ranks wait for each other, and how many there were. Of NCCL's: on the device.
SELECT cell.world_rank, identity, cell.call, total(cell.count) AS count, total(total_ns) AS total_ns
FROM cell
JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region)
JOIN selected_size ON cell.bytes BETWEEN low_bytes AND high_bytes
JOIN run_communicator USING (identity)
JOIN synchronizing ON synchronizing.call = cell.call
WHERE is_blocking AND measure = CASE library WHEN 'nccl' THEN 'device' ELSE 'call' END AND NOT is_inter AND run_communicator.size > 1
  AND cell.call IN (SELECT call FROM selected_call) AND identity IN (SELECT identity FROM selected_communicator)
  AND region_name IN (SELECT region_name FROM selected_region)
GROUP BY cell.world_rank, identity, cell.call;
