-- What did each rank do, and how long was it inside MPI?
WITH sent AS (
    SELECT world_rank, sum(count) AS sent_count, sum(bytes) AS sent_bytes
    FROM peer
    WHERE direction = 'sent' AND call IN (SELECT call FROM selected_call)
    GROUP BY world_rank
),
calls_made AS (
    SELECT world_rank, sum(count) AS count FROM cell WHERE measure IN ('call', 'poll', 'captured') GROUP BY world_rank
)
SELECT rank.world_rank AS rank,
       rank_use.host,
       pid,
       rank_wall.wall_ns,
       is_estimate AS wall_is_estimate,
       rank_wall.counted_ns,
       reset_unix_ns,
       0 AS mpi_ns, -- by_rank.py adds the sums of calls
       NULL AS mpi_share,
       NULL AS mpi_thread,
       1 AS mpi_thread_is_main,
       0 AS setup_ns,
       0 AS count,
       0 AS volume_bytes,
       coalesce(sent_count, 0) AS sent_count,
       coalesce(sent_bytes, 0) AS sent_bytes,
       ended,
       abort_code,
       state,
       is_copy,
       last_unix_ns,
       doing.doing_call,
       doing.doing_request_call,
       doing.doing_communicator,
       doing.doing_bytes,
       doing.doing_peer,
       doing.doing_tag,
       doing.doing_is_inside,
       doing.doing_since_unix_ns,
       doing_ns,
       dropped_calls,
       dropped_messages,
       dropped_completions,
       interrupted_calls,
       untracked_requests,
       folded_cells,
       folded_communicators,
       cost_init_ns + cost_finalize_ns + coalesce(calls_made.count, 0) * cost_per_call_ps / 1000.0 AS cost_ns,
       start_unix_ns,
       end_unix_ns,
       thread_level,
       0 AS nccl_count,
       0 AS nccl_volume_bytes,
       0 AS nccl_host_ns,
       NULL AS nccl_device_ns,
       affinity,
       cpu_ns,
       cpu_share,
       voluntary_switches,
       involuntary_switches,
       involuntary_switches_per_cpu_s,
       read_ns AS core_read_ns,
       core_ns,
       core_wait_ns,
       core_ns * 1.0 / read_ns AS core_share,
       core_wait_ns * 1.0 / read_ns AS core_wait_share,
       outside_ready,
       outside_asleep,
       outside_disk,
       inside_ready,
       inside_asleep,
       inside_disk
FROM rank
JOIN rank_wall USING (world_rank)
JOIN rank_state USING (world_rank)
LEFT JOIN doing ON doing.world_rank = rank.world_rank AND place_of_thread = 1
LEFT JOIN rank_use ON rank_use.world_rank = rank.world_rank
LEFT JOIN rank_core ON rank_core.world_rank = rank.world_rank
LEFT JOIN sent ON sent.world_rank = rank.world_rank
LEFT JOIN calls_made ON calls_made.world_rank = rank.world_rank
WHERE rank.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY rank.world_rank;
