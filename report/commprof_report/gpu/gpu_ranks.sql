-- Was the GPU traced in each selected rank, and if not, why?
SELECT rank.world_rank AS rank, gpu_state AS state, coalesce(reason.value, '') AS reason,
       coalesce(memory.value, '') AS device_memory, coalesce(part.value, '') AS traced_part,
       CAST(coalesce(graphs.value, 0) AS INTEGER) AS unseen_graph_launches,
       rank.world_rank IN (SELECT world_rank FROM cell WHERE measure = 'captured')
           AND rank.world_rank NOT IN (SELECT world_rank FROM gpu_activity WHERE is_graph)
           AS has_unseen_captures,
       rank_wall.wall_ns, gpu_records AS records, gpu_dropped_records AS dropped_records,
       gpu_implausible_records AS implausible_records,
       gpu_late_records AS late_records, gpu_unattributed_records AS unattributed_records,
       gpu_lost_intervals AS lost_intervals,
       gpu_unmatched_operations AS unmatched_operations,
       cost_gpu_begin_ns AS cost_begin_ns, cost_gpu_end_ns AS cost_end_ns
FROM rank
JOIN rank_wall USING (world_rank)
LEFT JOIN fact AS reason ON reason.world_rank = rank.world_rank AND reason.key = 'gpu.reason'
LEFT JOIN fact AS memory ON memory.world_rank = rank.world_rank AND memory.key = 'gpu.device_memory'
LEFT JOIN fact AS part ON part.world_rank = rank.world_rank AND part.key = 'gpu.traced_part'
LEFT JOIN fact AS graphs ON graphs.world_rank = rank.world_rank AND graphs.key = 'gpu.unseen_graph_launches'
WHERE rank.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY rank.world_rank;
