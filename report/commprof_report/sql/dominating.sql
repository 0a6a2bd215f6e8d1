-- Which call and message size took the most time among the chosen cells? MPI_Init and MPI_Finalize only if nothing else did.
SELECT call, bytes_low, bytes_high
FROM chosen_cell
WHERE is_completion = coalesce(:completion, 0) AND (:call IS NULL OR call = :call)
GROUP BY call, bytes_low, bytes_high
ORDER BY family = 'setup', family IN ('completion', 'probe'), sum(total_ns) DESC, call, bytes_low
LIMIT 1;
