-- Which call and message size took the most time among the selected cells? MPI_Init and MPI_Finalize only if there is nothing else; nonblocking
-- operations by their time to completion, NCCL's by that on the device, or by that of the calls that start them if nothing else is known.
SELECT call, bytes_low, bytes_high, timed AS measure
FROM chosen_cell
WHERE (:call IS NULL OR call = :call)
  AND NOT (timed = 'call' AND call IN (SELECT call FROM chosen_cell WHERE is_completion))
GROUP BY call, bytes_low, bytes_high, timed
ORDER BY family = 'setup', timed = 'captured', library = 'nccl' AND timed = 'call',
         family IN ('completion', 'probe'), sum(total_ns) DESC, call, bytes_low
LIMIT 1;
