-- Which ranks are, or were when last heard of, inside a call that has not returned? Of a rank that
-- runs only if it has been for :notable of its counted time: any rank that runs may be inside a call.
SELECT DISTINCT doing.world_rank
FROM doing
LEFT JOIN call ON call.name = doing_call
JOIN rank_state USING (world_rank)
JOIN rank_wall USING (world_rank)
WHERE doing_is_inside AND family IS NOT 'setup' AND (state <> 'running' OR doing_ns >= :notable * counted_ns)
ORDER BY doing.world_rank;
