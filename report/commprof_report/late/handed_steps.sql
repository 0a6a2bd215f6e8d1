-- When had the main thread of each rank handed over the last tensor of a step, and when had all
-- ranks? is_open: at any time since the step before; rank 0 sends itself no requests. On the
-- communicator, and in steps of the number of tensors, that have most of them: a metric summed
-- alone is no step.
WITH known AS (
    SELECT identity, negotiated_step.*
    FROM negotiated_step JOIN communicator USING (world_rank, communicator)
),
usual AS (
    SELECT identity, tensors FROM known GROUP BY identity, tensors ORDER BY total(tensors) DESC, tensors LIMIT 1
),
logged AS (
    SELECT max(step) * 1.0 / count(DISTINCT step) AS thinned FROM known JOIN usual USING (identity)
)
SELECT step, world_rank, after_ns AS begin_ns, (handed_after_ns + handed_ns) / 2 AS handed_ns,
       (handed_ns - handed_after_ns) / 2 AS open_ns,
       step > 1 AND handed_after_ns = after_ns AS is_open, agreed_ns, done_ns, known.tensors,
       thinned
FROM known JOIN usual USING (identity) JOIN logged
WHERE 2 * known.tensors > usual.tensors
ORDER BY step, world_rank;
