-- How long does a call take on a communicator, in the middle of all that were kept?
WITH placed AS (
    SELECT identity, call, end_ns - start_ns AS duration_ns,
           row_number() OVER (PARTITION BY identity, call ORDER BY end_ns - start_ns) AS place,
           count(*) OVER (PARTITION BY identity, call) AS count
    FROM sample
    JOIN communicator USING (world_rank, communicator)
    JOIN synchronizing USING (call)
    WHERE is_blocking AND sequence IS NOT NULL
)
SELECT identity, call, duration_ns AS median_ns FROM placed WHERE place = (count + 1) / 2;
