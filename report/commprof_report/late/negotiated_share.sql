-- How much of the run's time inside MPI, and in NCCL's operations on the device, is on threads that negotiate? Whatever was selected.
WITH spent AS (
    SELECT total_ns, negotiating.thread IS NOT NULL AS is_negotiated
    FROM cell
    LEFT JOIN call ON call.name = cell.call
    LEFT JOIN negotiating USING (world_rank, thread)
    WHERE measure IN (CASE coalesce(library, 'mpi') WHEN 'nccl' THEN 'device' ELSE 'call' END, 'poll') AND coalesce(family, '') <> 'setup'
)
SELECT total(CASE WHEN is_negotiated THEN total_ns END) / max(1, total(total_ns)) FROM spent;
