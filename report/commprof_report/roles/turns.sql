-- How do the sampled bulk calls of each communicator follow each other on its ranks? A turn is a
-- row of a rank's collectives on it without other bulk collectives or messages between them.
-- repeats: how often a size occurs in the turn of a collective, on average.
WITH bulk AS (
    SELECT world_rank, identity, family, call, bytes, start_ns
    FROM sample
    JOIN communicator_of USING (world_rank, communicator)
    JOIN call ON call.name = sample.call
    WHERE family IN ('collective', 'point-to-point') AND bytes > :control_bytes
),
following AS (
    SELECT *, identity IS NOT lag(identity) OVER (PARTITION BY world_rank ORDER BY start_ns)
           OR family IS NOT lag(family) OVER (PARTITION BY world_rank ORDER BY start_ns) AS is_first
    FROM bulk
),
numbered AS (
    SELECT *, total(is_first) OVER (
               PARTITION BY world_rank ORDER BY start_ns ROWS UNBOUNDED PRECEDING
           ) AS turn
    FROM following
),
turn AS (
    SELECT world_rank, identity, count(*) AS calls, count(DISTINCT call || bytes) AS sizes
    FROM numbered
    WHERE family = 'collective'
    GROUP BY world_rank, identity, turn
),
sent AS (
    SELECT world_rank, count(*) AS sends
    FROM bulk
    WHERE family = 'point-to-point' AND call NOT LIKE '%ecv%'
    GROUP BY world_rank
),
of_rank AS (
    SELECT world_rank, identity, count(*) AS turns, sum(calls) AS calls,
           sum(calls * 1.0 * calls / sizes) AS repeats
    FROM turn
    GROUP BY world_rank, identity
)
SELECT identity, sum(turns) AS turns, coalesce(sum(sends), 0) AS sends,
       sum(repeats) / sum(calls) AS repeats
FROM of_rank
LEFT JOIN sent USING (world_rank)
GROUP BY identity
ORDER BY identity;
