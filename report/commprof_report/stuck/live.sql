-- What has each rank done up to now, and which call is it in? Time in MPI includes the call that a thread is in, but not MPI_Init and
-- MPI_Finalize. If a rank has several threads: the time of the one that spent most in MPI, and of the one that spent most in collectives.
-- NCCL's operations have columns of their own, by their time on the device. GPUs: the time that is summed up, and the part of it in which
-- something ran, over the rank's devices.
WITH spent AS (
    SELECT world_rank, thread, sum(total_ns) AS mpi_ns,
           sum(CASE WHEN family = 'collective' THEN total_ns ELSE 0 END) AS collective_ns
    FROM chosen_cell
    WHERE family <> 'setup' AND timed = 'call' AND library = 'mpi'
    GROUP BY world_rank, thread
    UNION ALL
    SELECT world_rank, thread, doing_ns, CASE WHEN family = 'collective' THEN doing_ns ELSE 0 END
    FROM doing
    LEFT JOIN call ON call.name = doing_call
    WHERE doing_is_inside AND family IS NOT 'setup' AND library IS NOT 'nccl'
),
by_thread AS (
    SELECT world_rank, sum(mpi_ns) AS mpi_ns, sum(collective_ns) AS collective_ns FROM spent GROUP BY world_rank, thread
),
in_mpi AS (
    SELECT world_rank, max(mpi_ns) AS mpi_ns, max(collective_ns) AS collective_ns FROM by_thread GROUP BY world_rank
),
made AS (
    SELECT world_rank, sum(CASE WHEN is_call THEN count ELSE 0 END) AS count,
           sum(CASE WHEN is_call THEN volume_bytes ELSE 0 END) AS volume_bytes,
           sum(CASE timed WHEN 'device' THEN total_ns ELSE 0 END) AS device_ns, max(library = 'nccl') AS has_nccl
    FROM chosen_cell
    WHERE family <> 'setup' AND NOT is_completion
    GROUP BY world_rank
),
gpu AS (
    SELECT world_rank, CAST(total(ns) AS INTEGER) AS traced_ns,
           CAST(total(CASE WHEN is_computing OR is_communicating OR is_copying THEN ns END) AS INTEGER) AS busy_ns
    FROM gpu_busy
    GROUP BY world_rank
)
SELECT rank.world_rank AS rank,
       host.value AS host,
       state,
       abort_code,
       is_copy,
       start_unix_ns,
       last_unix_ns,
       coalesce(reset_unix_ns, 0) AS reset_unix_ns,
       rank_wall.wall_ns,
       coalesce(count, 0) AS count,
       coalesce(volume_bytes, 0) AS volume_bytes,
       coalesce(mpi_ns, 0) AS mpi_ns,
       coalesce(collective_ns, 0) AS collective_ns,
       doing_call,
       doing_request_call,
       doing_communicator,
       doing_bytes,
       doing_peer,
       doing_tag,
       doing_is_inside,
       doing_ns,
       coalesce(has_nccl, 0) AS has_nccl,
       coalesce(device_ns, 0) AS device_ns,
       coalesce(gpu.traced_ns, 0) AS gpu_traced_ns,
       coalesce(gpu.busy_ns, 0) AS gpu_busy_ns
FROM rank
JOIN rank_wall USING (world_rank)
JOIN rank_state USING (world_rank)
LEFT JOIN in_mpi USING (world_rank)
LEFT JOIN made USING (world_rank)
LEFT JOIN gpu USING (world_rank)
LEFT JOIN doing ON doing.world_rank = rank.world_rank AND place_of_thread = 1
LEFT JOIN fact AS host ON host.world_rank = rank.world_rank AND host.key = 'host'
WHERE rank.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY rank.world_rank;
