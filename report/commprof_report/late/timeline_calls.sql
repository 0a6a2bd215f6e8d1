-- The MPI calls of each rank's thread, in order of time. state, if the call is not split: 1 transfer (it only starts operations), 2 files,
-- 4 not split; as in timelines.py.
SELECT sample.world_rank, start_ns, end_ns, sample.call,
       CASE WHEN family = 'io' THEN 2
            WHEN form <> 'blocking' OR (family = 'point-to-point' AND bandwidth = 'silent') THEN 1
            ELSE 4 END AS state
FROM sample
JOIN json_each(:threads) AS followed ON sample.world_rank = CAST(followed.key AS INTEGER) AND sample.thread = followed.value
LEFT JOIN call ON call.name = sample.call
WHERE coalesce(library, 'mpi') = 'mpi' AND coalesce(family, '') <> 'setup'
ORDER BY sample.world_rank, start_ns, end_ns;
