-- How much of the time inside MPI is spent in polls, which are never sampled?
SELECT coalesce(total(CASE measure WHEN 'poll' THEN total_ns END) / nullif(total(CASE library WHEN 'mpi' THEN total_ns END), 0), 0.0)
FROM cell
JOIN call ON call.name = cell.call
WHERE measure IN ('call', 'poll') AND family <> 'setup';
