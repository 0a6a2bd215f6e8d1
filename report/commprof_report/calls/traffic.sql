-- How much of the calls, bytes and time is bulk, how much control? One row per call; calls that are neither come last. Shares are of the
-- time in MPI. For NCCL total_ns is its calls' time on the host, device_ns that of its operations.
SELECT traffic,
       call,
       family,
       sum(CASE WHEN is_call THEN count ELSE 0 END) AS count,
       min(bytes) AS least_bytes,
       max(bytes) AS most_bytes,
       sum(CASE WHEN is_call THEN chosen_cell.volume_bytes ELSE 0 END) AS volume_bytes,
       sum(CASE WHEN is_call THEN total_ns ELSE 0 END) AS total_ns,
       CASE library WHEN 'mpi' THEN sum(total_ns) * 1.0 / nullif((
           SELECT total(total_ns) FROM chosen_cell WHERE timed = 'call' AND library = 'mpi' AND family <> 'setup'
       ), 0) END AS share_of_time,
       threshold_bytes,
       (SELECT total(volume_bytes) FROM control_size) / nullif((SELECT total(volume_bytes) FROM moved_size), 0) AS control_share,
       library,
       sum(CASE timed WHEN 'device' THEN total_ns END) AS device_ns,
       sum(CASE WHEN is_told AND is_call THEN count ELSE 0 END) AS told_count
FROM chosen_cell
JOIN cell_traffic USING (cell)
LEFT JOIN control_size USING (call)
WHERE NOT is_completion AND traffic <> 'setup'
GROUP BY traffic, call
ORDER BY CASE traffic WHEN 'bulk' THEN 0 WHEN 'control' THEN 1 WHEN 'completion' THEN 2 WHEN 'group' THEN 4 WHEN 'alone' THEN 5 ELSE 3 END, sum(total_ns) DESC, call;
