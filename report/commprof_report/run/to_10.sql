-- Version 9 did not count the calls that signal handlers make while they interrupt the profiler.
CREATE TABLE source.newer_rank AS
SELECT world_rank, world_size, run_id, pid, thread_level, start_unix_ns, start_monotonic_ns,
       end_unix_ns, wall_ns, counted_ns, reset_unix_ns, ended, abort_code, dropped_calls,
       0 AS interrupted_calls,
       untracked_requests, folded_cells, folded_communicators, cost_init_ns, cost_finalize_ns,
       cost_per_call_ps, clock_error_ppb, gpu_state, gpu_records, gpu_dropped_records,
       gpu_implausible_records, gpu_late_records, gpu_unattributed_records, gpu_lost_intervals,
       gpu_unmatched_operations, gpu_memory_kind_queries, gpu_memory_kind_changes,
       cost_gpu_begin_ns, cost_gpu_end_ns
FROM source.rank;
DROP TABLE source.rank;
ALTER TABLE source.newer_rank RENAME TO rank;
