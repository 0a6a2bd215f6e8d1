-- How much of the calls, bytes and time is bulk, how much control? By call; what is neither comes last.
SELECT traffic,
       call,
       family,
       sum(count) AS count,
       min(bytes) AS least_bytes,
       max(bytes) AS most_bytes,
       sum(chosen_cell.volume_bytes) AS volume_bytes,
       sum(total_ns) AS total_ns,
       sum(total_ns) * 1.0 / nullif((SELECT total(total_ns) FROM chosen_cell WHERE NOT is_completion AND family <> 'setup'), 0)
           AS share_of_time,
       threshold_bytes,
       (SELECT total(volume_bytes) FROM control_size) / nullif((SELECT total(volume_bytes) FROM moved_size), 0) AS control_share
FROM chosen_cell
JOIN cell_traffic USING (cell)
LEFT JOIN control_size USING (call)
WHERE NOT is_completion AND traffic <> 'setup'
GROUP BY traffic, call
ORDER BY CASE traffic WHEN 'bulk' THEN 0 WHEN 'control' THEN 1 WHEN 'completion' THEN 2 ELSE 3 END, sum(total_ns) DESC, call;
