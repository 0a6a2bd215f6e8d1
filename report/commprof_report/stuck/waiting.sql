-- Which threads are inside a call, or were at their rank's last sign of life? `family` is that of the
-- operation that the call waits for: of the call itself, or of the call that created the request.
SELECT doing.world_rank AS rank, doing.thread, state, doing_call AS call,
       doing_request_call AS request_call, doing_communicator AS communicator, identity,
       coalesce(family, 'unknown') AS family, doing_bytes AS bytes, doing_peer AS peer,
       doing_tag AS tag, doing_since_unix_ns AS since_unix_ns, doing_ns
FROM doing
JOIN rank_state USING (world_rank)
LEFT JOIN call ON call.name = coalesce(doing_request_call, doing_call)
WHERE doing_is_inside AND doing.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY doing.world_rank, since_unix_ns, thread;
