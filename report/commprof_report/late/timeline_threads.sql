-- Whose calls are a rank's timeline? The main thread's; where that makes none, those of the thread with the most time in MPI.
WITH spent AS (
    SELECT world_rank, thread, coalesce(is_main, 1) AS is_main, total(end_ns - start_ns) AS mpi_ns
    FROM sample
    LEFT JOIN call ON call.name = sample.call
    LEFT JOIN thread USING (world_rank, thread)
    WHERE coalesce(library, 'mpi') = 'mpi' AND coalesce(family, '') <> 'setup'
    GROUP BY world_rank, thread
),
placed AS (
    SELECT world_rank, thread, row_number() OVER (PARTITION BY world_rank ORDER BY is_main DESC, mpi_ns DESC, thread) AS place FROM spent
)
SELECT world_rank, thread FROM placed WHERE place = 1;
