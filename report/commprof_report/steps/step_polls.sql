-- How much of the time inside MPI is spent in polls, which are never sampled? Of all threads, and of the main ones.
SELECT coalesce(total(polls_ns) / nullif(total(mpi_ns), 0), 0.0) AS poll_share,
       coalesce(total(CASE WHEN is_main THEN polls_ns END) / nullif(total(CASE WHEN is_main THEN mpi_ns END), 0), 0.0)
           AS main_poll_share
FROM (
    SELECT CASE measure WHEN 'poll' THEN total_ns END AS polls_ns,
           CASE library WHEN 'mpi' THEN total_ns END AS mpi_ns,
           coalesce(is_main, 1) AS is_main
    FROM cell
    JOIN call ON call.name = cell.call
    LEFT JOIN thread USING (world_rank, thread)
    WHERE measure IN ('call', 'poll') AND family <> 'setup'
);
