-- Size and communicator of the calls of main threads that begin in a part that is drawn.
SELECT sample.world_rank, sample.start_ns, sample.bytes, nullif(label, '-') AS communicator
FROM sample
CROSS JOIN temp.step_view_window AS view ON view.world_rank = sample.world_rank AND sample.start_ns BETWEEN view.begin_ns AND view.end_ns
LEFT JOIN thread ON thread.world_rank = sample.world_rank AND thread.thread = sample.thread
LEFT JOIN communicator_of ON communicator_of.world_rank = sample.world_rank AND communicator_of.communicator = sample.communicator
WHERE coalesce(is_main, 1);
