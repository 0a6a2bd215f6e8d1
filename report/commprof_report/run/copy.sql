-- Adds all rows of the attached file `source` to the run; cells and activities get numbers that are free in the run.
INSERT INTO main.rank SELECT
    world_rank, world_size, run_id, pid, thread_level, start_unix_ns, start_monotonic_ns, end_unix_ns, wall_ns, counted_ns,
    reset_unix_ns, ended, abort_code, dropped_calls, untracked_requests, folded_cells, folded_communicators,
    cost_init_ns, cost_finalize_ns, cost_per_call_ps, clock_error_ppb,
    gpu_state, gpu_records, gpu_dropped_records, gpu_implausible_records, gpu_late_records, gpu_unkept_records, gpu_lost_intervals,
    gpu_unmatched_operations, gpu_memory_kind_queries, gpu_memory_kind_changes, cost_gpu_begin_ns, cost_gpu_end_ns
FROM source.rank;

INSERT INTO main.fact SELECT world_rank, key, value FROM source.fact;

INSERT INTO main.thread SELECT
    world_rank, thread, tid, name, is_main, doing_call, doing_communicator, doing_is_inside, doing_since_ns, doing_bytes,
    doing_peer, doing_tag, doing_awaited
FROM source.thread;

INSERT OR IGNORE INTO main.call SELECT name, family, library, form, bandwidth, waits_for FROM source.call;

INSERT INTO main.communicator SELECT
    world_rank, communicator, identity, parent_identity, name, constructor, ordinal, size, remote_size, comm_rank,
    members, is_inter, is_freed, collectives, library, sample_level
FROM source.communicator;

INSERT INTO main.recent_collective SELECT
    world_rank, communicator, sequence, call, bytes, root
FROM source.recent_collective;

INSERT INTO main.cell SELECT
    cell + :first_cell, world_rank, thread, call, communicator, bytes, measure, memory_kind, region, is_folded, count,
    volume_bytes, total_ns, min_ns, max_ns, blocked_ns
FROM source.cell
WHERE count > 0;

INSERT INTO main.bucket
SELECT cell + :first_cell, bucket, count FROM source.bucket WHERE :with_histograms AND count > 0 ORDER BY cell, bucket;

INSERT INTO main.peer SELECT world_rank, call, direction, communicator, peer, count, bytes, time_ns FROM source.peer;

INSERT INTO main.region SELECT world_rank, region, name FROM source.region;

INSERT INTO main.gpu_device SELECT
    world_rank, device, number, name, uuid, first_ns, last_ns, kernels, copies, sets
FROM source.gpu_device;

INSERT INTO main.gpu_busy SELECT
    world_rank, device, is_computing, is_communicating, is_copying, is_in_mpi, ns
FROM source.gpu_busy;

INSERT INTO main.gpu_stream SELECT world_rank, stream, device, context, number FROM source.gpu_stream;

INSERT INTO main.gpu_kernel SELECT world_rank, kernel, name, is_communication FROM source.gpu_kernel;

INSERT INTO main.gpu_activity SELECT
    activity + :first_activity, world_rank, stream, kind, kernel, copy, is_graph, is_pageable, is_managed, bytes, count,
    volume_bytes, total_ns, min_ns, max_ns
FROM source.gpu_activity
WHERE count > 0;

INSERT INTO main.gpu_bucket
SELECT activity + :first_activity, bucket, count
FROM source.gpu_bucket
WHERE :with_histograms AND count > 0
ORDER BY activity, bucket;

INSERT INTO main.nccl_algorithm SELECT
    world_rank, call, communicator, bytes, is_folded, algorithm, protocol, channels, count
FROM source.nccl_algorithm;

INSERT INTO main.gpu_tracing SELECT world_rank, begin_ns, end_ns, ended, clock_error_ns, records FROM source.gpu_tracing;
