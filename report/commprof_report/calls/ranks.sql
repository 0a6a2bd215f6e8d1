-- What is known of each rank, but for the sums of its calls? Of columns of one name the last counts.
WITH sent AS (
    SELECT world_rank, sum(count) AS sent_count, sum(bytes) AS sent_bytes
    FROM peer
    WHERE direction = 'sent' AND call IN (SELECT call FROM selected_call)
    GROUP BY world_rank
),
made AS (
    SELECT world_rank, sum(count) AS calls FROM cell WHERE measure IN ('call', 'poll', 'captured') GROUP BY world_rank
)
SELECT doing.*, rank_use.*, rank_core.*, rank.*, rank_wall.*, rank_state.*,
       coalesce(sent_count, 0) AS sent_count, coalesce(sent_bytes, 0) AS sent_bytes, is_estimate AS wall_is_estimate,
       cost_init_ns + cost_finalize_ns + coalesce(calls, 0) * cost_per_call_ps / 1000.0 AS cost_ns,
       read_ns AS core_read_ns, core_ns * 1.0 / read_ns AS core_share, core_wait_ns * 1.0 / read_ns AS core_wait_share,
       rank.world_rank AS rank
FROM rank
JOIN rank_wall USING (world_rank)
JOIN rank_state USING (world_rank)
LEFT JOIN doing ON doing.world_rank = rank.world_rank AND place_of_thread = 1
LEFT JOIN rank_use ON rank_use.world_rank = rank.world_rank
LEFT JOIN rank_core ON rank_core.world_rank = rank.world_rank
LEFT JOIN sent ON sent.world_rank = rank.world_rank
LEFT JOIN made ON made.world_rank = rank.world_rank
WHERE rank.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY rank.world_rank;
