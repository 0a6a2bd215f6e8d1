-- Version 9 did not count the calls that signal handlers make while they interrupt the profiler, nor the multiprocessors that kernels
-- occupy, and did not read the counters and sensors of devices.
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

CREATE TABLE source.newer_gpu_device AS
SELECT *, NULL AS sms, 0 AS communication_ns, 0 AS communication_sm_ns,
       0 AS communication_most_sms, NULL AS memory_bytes
FROM source.gpu_device;
DROP TABLE source.gpu_device;
ALTER TABLE source.newer_gpu_device RENAME TO gpu_device;

CREATE TABLE source.gpu_reading (
    world_rank            INTEGER NOT NULL,
    device                INTEGER NOT NULL,
    at_ns                 INTEGER NOT NULL,
    clock_mhz             INTEGER,
    memory_used_bytes     INTEGER,
    nvlink_sent_bytes     INTEGER,
    nvlink_received_bytes INTEGER,
    pcie_sent_bytes       INTEGER,
    pcie_received_bytes   INTEGER,
    is_idle               BOOLEAN,
    is_power_limited      BOOLEAN,
    is_heat_limited       BOOLEAN,
    is_hardware_limited   BOOLEAN,
    PRIMARY KEY (world_rank, device, at_ns)
) WITHOUT ROWID;
