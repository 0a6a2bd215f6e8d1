-- How many processes does the largest communicator have? And were collectives of NCCL counted, of which none was timed on the device?
SELECT (SELECT max(1, coalesce(max(size + remote_size), 1)) FROM communicator),
       count(*) > 0 AND total(measure = 'device') = 0
FROM cell
JOIN call ON call.name = cell.call
WHERE library = 'nccl' AND family = 'collective' AND cell.call IN (SELECT call FROM selected_call)
  AND world_rank IN (SELECT world_rank FROM selected_rank);
