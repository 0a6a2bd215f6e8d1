-- Calls of whose waiting only an estimate is known, by their begin on the run's axis: the clocks are not accurate enough.
SELECT world_rank, start_ns FROM late_call WHERE is_estimate;
