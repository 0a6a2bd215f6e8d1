-- Which threads are inside a call, or were when their rank was last heard of? `family` is of what the call waits for: itself, or
-- the call that made the request.
SELECT doing.world_rank AS rank,
       doing.thread,
       state,
       doing.call,
       nullif(awaited, '') AS awaited,
       nullif(label, '-') AS communicator,
       identity,
       coalesce(family, 'unknown') AS family,
       doing.bytes,
       peer,
       tag,
       since_unix_ns,
       doing_ns
FROM doing
JOIN rank_state USING (world_rank)
LEFT JOIN call ON call.name = coalesce(nullif(awaited, ''), doing.call)
WHERE is_inside AND doing.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY doing.world_rank, since_unix_ns, thread;
