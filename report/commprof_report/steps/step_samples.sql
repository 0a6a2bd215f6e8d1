-- The samples of each rank in order of time, without set-up calls.
SELECT sample.world_rank,
       sample.thread,
       sample.call,
       communicator,
       sequence,
       sample.start_ns,
       sample.end_ns,
       sample.bytes,
       coalesce(family, 'unknown') AS family,
       coalesce(library, 'mpi') AS library,
       device_start_ns,
       device_end_ns,
       is_shared
FROM sample
LEFT JOIN call ON call.name = sample.call
WHERE coalesce(family, '') <> 'setup' AND sample.world_rank IN (SELECT world_rank FROM run_step)
ORDER BY sample.world_rank, sample.start_ns, sample.end_ns;
