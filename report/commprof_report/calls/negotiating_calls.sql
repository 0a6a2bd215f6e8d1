-- The sampled collectives of threads other than the main one, thread by thread in order of time: of the lowest rank that has any.
WITH background AS (
    SELECT world_rank, thread FROM thread WHERE NOT is_main
),
speaking AS (
    SELECT min(sample.world_rank) AS world_rank
    FROM sample
    JOIN background USING (world_rank, thread)
    WHERE sequence IS NOT NULL
)
SELECT sample.world_rank,
       sample.thread,
       identity,
       sequence,
       sample.call,
       start_ns,
       coalesce(bytes, 0) > coalesce(threshold_bytes, 64) AS is_bulk
FROM sample
JOIN background USING (world_rank, thread)
JOIN communicator USING (world_rank, communicator)
JOIN call ON call.name = sample.call
LEFT JOIN control_size ON control_size.call = sample.call
WHERE sample.world_rank = (SELECT world_rank FROM speaking) AND sequence IS NOT NULL AND family IN ('collective', 'neighborhood')
  AND communicator.library = 'mpi'
ORDER BY sample.world_rank, sample.thread, start_ns;
