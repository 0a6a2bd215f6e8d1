-- The operations that calls have set up or started: bytes, and the return of the call that completed them.
SELECT world_rank, thread, start_ns, completed_ns, bytes, 1 AS is_persistent FROM sample_start
UNION ALL
SELECT world_rank, thread, start_ns, completed_ns, bytes, form = 'persistent' FROM sample_message JOIN call ON call.name = sample_message.call;
