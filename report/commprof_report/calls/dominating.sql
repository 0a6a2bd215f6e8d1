-- Which call and message size took the most time among the chosen cells? MPI_Init and MPI_Finalize only if nothing else did; NCCL's
-- operations by their time on the device, and by that of the calls on the host only where nothing else is known.
SELECT call, bytes_low, bytes_high, timed AS measure
FROM chosen_cell
WHERE is_completion = coalesce(:completion, 0) AND (:call IS NULL OR call = :call)
GROUP BY call, bytes_low, bytes_high, timed
ORDER BY family = 'setup', timed = 'captured', library = 'nccl' AND timed = 'call',
         family IN ('completion', 'probe'), sum(total_ns) DESC, call, bytes_low
LIMIT 1;
