-- How many processes does the largest communicator have? And were collectives of NCCL counted, of which none was timed on the device?
SELECT (SELECT max(1, coalesce(max(size + remote_size), 1)) FROM communicator),
       count(*) > 0 AND total(timed = 'device') = 0
FROM chosen_cell
WHERE library = 'nccl' AND family = 'collective';
