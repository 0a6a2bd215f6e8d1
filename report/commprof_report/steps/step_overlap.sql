-- How much of the time of nonblocking collectives was overlapped, over the whole run?
SELECT cell.call, label AS communicator, total(cell.total_ns) AS completion_ns, total(blocked_ns) AS blocked_ns
FROM cell
JOIN call ON call.name = cell.call
JOIN communicator_of USING (world_rank, communicator)
WHERE measure = 'completion'
GROUP BY cell.call, label
HAVING completion_ns > 0;
