-- How much time did each rank spend in point-to-point messages? In blocking receives (and probes), in blocking sends, and blocked for
-- nonblocking ones. A call may wait for several requests; blocked times are scaled down so that their sum is at most the duration of all
-- calls that start or complete messages. NCCL's messages wait on the device, so the times of a rank that has some are unknown.
WITH blocking AS (
    SELECT world_rank,
           sum(CASE WHEN family = 'probe' OR call LIKE '%recv%' THEN total_ns ELSE 0 END) AS receive_ns,
           sum(CASE WHEN family = 'probe' OR call LIKE '%recv%' THEN 0 ELSE total_ns END) AS send_ns
    FROM chosen_cell
    WHERE measure = 'call' AND library = 'mpi' AND family IN ('point-to-point', 'probe') AND form = 'blocking'
      AND call NOT IN ('MPI_Start', 'MPI_Startall')
    GROUP BY world_rank
),
nonblocked AS (
    SELECT world_rank,
           sum(CASE WHEN call LIKE '%recv%' THEN blocked_ns ELSE 0 END) AS receive_ns,
           sum(CASE WHEN call LIKE '%recv%' THEN 0 ELSE blocked_ns END) AS send_ns
    FROM chosen_cell
    WHERE is_completion AND family = 'point-to-point'
    GROUP BY world_rank
),
waited AS (
    SELECT world_rank, sum(total_ns) AS wait_ns
    FROM chosen_cell
    WHERE NOT is_completion AND (family = 'completion' OR form = 'nonblocking' OR call IN ('MPI_Start', 'MPI_Startall'))
    GROUP BY world_rank
),
scaled AS (
    SELECT world_rank, receive_ns, send_ns, min(1.0, coalesce(wait_ns, 0) * 1.0 / nullif(receive_ns + send_ns, 0)) AS part
    FROM nonblocked
    LEFT JOIN waited USING (world_rank)
)
SELECT world_rank AS rank,
       CASE WHEN NOT has_nccl THEN coalesce(blocking.receive_ns, 0) + CAST(coalesce(scaled.receive_ns * part, 0) AS INTEGER) END
           AS receive_ns,
       CASE WHEN NOT has_nccl THEN coalesce(blocking.send_ns, 0) + CAST(coalesce(scaled.send_ns * part, 0) AS INTEGER) END AS send_ns,
       counted_ns,
       has_nccl
FROM (SELECT *, world_rank IN (SELECT world_rank FROM peer WHERE communicator > 0) AS has_nccl FROM rank_wall)
LEFT JOIN blocking USING (world_rank)
LEFT JOIN scaled USING (world_rank)
WHERE world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY world_rank;
