-- When had the main thread of each rank handed over the last tensor of a step, and when had all
-- ranks? is_open: at any time since the step before; rank 0 sends itself no requests. waits_ns:
-- from then on it waits: handing over in the middle between two rounds, or at the latest if it
-- could be at any time; null: not at all.
SELECT identity, step, world_rank, after_ns AS begin_ns,
       (handed_after_ns + handed_ns) / 2 AS handed_ns,
       (handed_ns - handed_after_ns) / 2 AS open_ns,
       step > 1 AND handed_after_ns = after_ns AS is_open,
       CASE WHEN done_ns > handed_ns THEN (
           CASE handed_after_ns WHEN after_ns THEN handed_ns ELSE handed_after_ns END + handed_ns
       ) / 2 END AS waits_ns,
       agreed_ns, done_ns, tensors
FROM negotiated_step JOIN communicator USING (world_rank, communicator)
ORDER BY step, world_rank;
