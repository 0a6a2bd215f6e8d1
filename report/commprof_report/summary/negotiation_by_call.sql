-- How long is the thread of each rank with the most time in MPI in control collectives, by call,
-- if it negotiates (traffic_class.sql)?
SELECT world_rank AS rank, call, sum(total_ns) AS negotiation_ns
FROM chosen_cell
JOIN busiest_thread USING (world_rank, thread)
JOIN negotiating USING (world_rank, thread)
JOIN cell_traffic USING (cell)
WHERE traffic = 'control' AND timed = 'call' AND library = 'mpi'
  AND family IN ('collective', 'neighborhood')
GROUP BY world_rank, call;
