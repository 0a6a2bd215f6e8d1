-- The threads in a timeline, each with the call that it was inside when its rank ended or was read, if any.
SELECT thread.world_rank AS rank,
       thread.thread,
       thread.tid,
       thread.name,
       thread.is_main,
       CASE WHEN doing_is_inside AND ended = 'running' THEN nullif(doing_call, '') END AS unfinished,
       doing_since_ns AS since_ns,
       coalesce(rank_wall.wall_ns, doing_since_ns) AS last_ns,
       nullif(label, '-') AS communicator,
       doing_bytes AS bytes,
       doing_peer AS peer,
       nullif(doing_request_call, '') AS request_call
FROM thread
JOIN rank USING (world_rank)
JOIN rank_wall USING (world_rank)
LEFT JOIN communicator_of ON communicator_of.world_rank = thread.world_rank AND communicator_of.communicator = doing_communicator
ORDER BY thread.world_rank, thread.thread;
