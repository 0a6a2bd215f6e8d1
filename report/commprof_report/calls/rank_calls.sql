-- How much time did each rank spend in each call? (For the picture of `ranks`.) If there are no MPI calls: NCCL's operations on the
-- device, or its calls on the host if device times are unknown.
WITH drawn AS (
    SELECT library, timed
    FROM chosen_cell
    WHERE family <> 'setup' AND timed IN ('call', 'device')
    ORDER BY library <> 'mpi', timed <> 'device'
    LIMIT 1
)
SELECT world_rank AS rank, call, sum(count) AS count, sum(total_ns) AS total_ns, library, timed AS measure
FROM chosen_cell
JOIN drawn USING (library, timed)
WHERE family <> 'setup'
GROUP BY world_rank, call
ORDER BY total(sum(total_ns)) OVER (PARTITION BY call) DESC, call, world_rank;
