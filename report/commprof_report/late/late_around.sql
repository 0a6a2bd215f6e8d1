-- How many processes does the largest communicator have? And were collectives of NCCL counted, of which none was timed on the device?
SELECT (SELECT max(1, coalesce(max(size + remote_size), 1)) FROM communicator),
       count(*) > 0 AND total(measure = 'device') = 0
FROM cell
JOIN call ON call.name = cell.call
JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region)
JOIN selected_size ON cell.bytes BETWEEN low_bytes AND high_bytes
WHERE library = 'nccl' AND family = 'collective' AND cell.call IN (SELECT call FROM selected_call)
  AND cell.world_rank IN (SELECT world_rank FROM selected_rank)
  AND identity IN (SELECT identity FROM selected_communicator)
  AND region_name IN (SELECT region_name FROM selected_region);
