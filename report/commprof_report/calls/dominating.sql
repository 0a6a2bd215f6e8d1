-- Which call and message size took the most time among the selected cells? MPI_Init and MPI_Finalize only if there is nothing else; NCCL's
-- operations by their time on the device, or by that of the calls on the host if nothing else is known.
SELECT call, bytes_low, bytes_high, timed AS measure
FROM chosen_cell
WHERE is_completion = coalesce(:completion, 0) AND (:call IS NULL OR call = :call)
GROUP BY call, bytes_low, bytes_high, timed
ORDER BY family = 'setup', timed = 'captured', library = 'nccl' AND timed = 'call',
         family IN ('completion', 'probe'), sum(total_ns) DESC, call, bytes_low
LIMIT 1;
