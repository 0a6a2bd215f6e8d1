-- For each thread: how many of its calls are sampled only in windows, how long does it poll (never sampled), and how long is it in MPI?
SELECT world_rank, thread,
       total(CASE WHEN family IN ('point-to-point', 'completion', 'probe', 'rma', 'io') AND measure = 'call' THEN count END) AS made,
       total(CASE measure WHEN 'poll' THEN total_ns END) AS poll_ns,
       total(CASE library WHEN 'mpi' THEN total_ns END) AS mpi_ns
FROM cell
JOIN call ON call.name = cell.call
WHERE measure IN ('call', 'poll') AND family <> 'setup'
GROUP BY world_rank, thread;
