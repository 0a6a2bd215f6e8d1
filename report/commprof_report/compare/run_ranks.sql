-- Where did each rank run, how did it end, and was it disturbed? threads: those that communicate, and the main one.
SELECT rank.world_rank AS rank, host, affinity, state, rank_wall.wall_ns, rank_wall.counted_ns,
       dropped_calls + interrupted_calls AS unrecorded_calls, rank.start_unix_ns,
       (
           SELECT 1 + count(DISTINCT cell.thread)
           FROM cell
           JOIN thread USING (world_rank, thread)
           JOIN call ON call.name = cell.call
           WHERE cell.world_rank = rank.world_rank AND NOT is_main AND family <> 'setup'
       ) AS threads,
       NULL AS core_wait
FROM rank
JOIN rank_wall ON rank_wall.world_rank = rank.world_rank
JOIN rank_state ON rank_state.world_rank = rank.world_rank
LEFT JOIN rank_use ON rank_use.world_rank = rank.world_rank
ORDER BY rank.world_rank;
