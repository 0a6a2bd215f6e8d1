-- How often did each rank make each call, and how long did that take? One row per call, communicator, size, memory kind, measure, kind of
-- traffic and rank, without set-up, calls that create communicators, and completions. Unsuccessful polls count by their time only: their
-- number depends on the time. bytes: null if each rank has a size of its own.
SELECT call, family, library, identity, CASE bandwidth WHEN 'own-size' THEN NULL ELSE bytes_high END AS bytes, memory_kind, timed AS measure,
       traffic,
       world_rank,
       sum(CASE measure WHEN 'poll' THEN 0 ELSE count END) AS count,
       sum(volume_bytes) AS volume_bytes,
       sum(total_ns) AS total_ns,
       min(min_ns) AS min_ns,
       max(max_ns) AS max_ns
FROM chosen_cell
JOIN cell_traffic USING (cell)
WHERE family NOT IN ('setup', 'communicator') AND NOT is_completion AND timed <> 'captured'
GROUP BY call, family, library, identity, CASE bandwidth WHEN 'own-size' THEN NULL ELSE bytes_high END, memory_kind, timed, traffic, world_rank
ORDER BY world_rank;
