-- How long was each GPU of the selected ranks in each combination of states? The state is a sum of 1 computing, 2 communicating, 4
-- copying, 8 in MPI.
SELECT world_rank AS rank,
       device,
       (is_computing <> 0) + 2 * (is_communicating <> 0) + 4 * (is_copying <> 0) + 8 * (is_in_mpi <> 0) AS state,
       ns
FROM gpu_busy
WHERE world_rank IN (SELECT world_rank FROM selected_rank);
