-- The MPI calls of each rank's main thread, in order of time. state, if the call is not split: 1 transfer (it only starts operations), 2 files,
-- 4 not split; as in timelines.py.
SELECT sample.world_rank, start_ns, end_ns, sample.call,
       CASE WHEN family = 'io' THEN 2
            WHEN form <> 'blocking' OR (family = 'point-to-point' AND bandwidth = 'silent') THEN 1
            ELSE 4 END AS state
FROM sample
LEFT JOIN call ON call.name = sample.call
LEFT JOIN thread ON thread.world_rank = sample.world_rank AND thread.thread = sample.thread
WHERE coalesce(is_main, 1) AND coalesce(library, 'mpi') = 'mpi' AND coalesce(family, '') <> 'setup'
ORDER BY sample.world_rank, start_ns, end_ns;
