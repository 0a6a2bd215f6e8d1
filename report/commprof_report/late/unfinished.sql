-- Which ranks are, or were when last heard of, inside a call that has not returned?
SELECT DISTINCT world_rank
FROM doing
LEFT JOIN call ON call.name = doing_call
WHERE doing_is_inside AND family IS NOT 'setup'
ORDER BY world_rank;
