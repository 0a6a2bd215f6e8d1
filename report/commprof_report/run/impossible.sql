-- Which tables of a rank's file contain values that no run can have? (`source` is the attached file. 1 << 62 ns are 146 years; two
-- sums or times up to that can be added without overflow.)
WITH memory_kind_name(name) AS (
    VALUES ('host'), ('device'), ('managed'), ('pinned')
),
known_memory_kind(name) AS (
    SELECT name FROM memory_kind_name
    UNION ALL
    SELECT sent.name || '>' || received.name FROM memory_kind_name AS sent, memory_kind_name AS received
    WHERE sent.name <> received.name
)
SELECT 'rank' AS name
WHERE EXISTS (
    SELECT 1 FROM source.rank
    WHERE typeof(world_rank) || typeof(world_size) || typeof(start_unix_ns) || typeof(start_monotonic_ns) || typeof(counted_ns)
          <> 'integerintegerintegerintegerinteger'
       OR typeof(pid) || typeof(thread_level) || typeof(abort_code) || typeof(clock_error_ppb)
          <> 'integerintegerintegerinteger'
       OR typeof(dropped_calls) || typeof(untracked_requests) || typeof(folded_cells) || typeof(folded_communicators)
          <> 'integerintegerintegerinteger'
       OR typeof(cost_init_ns) || typeof(cost_finalize_ns) || typeof(cost_per_call_ps) <> 'integerintegerinteger'
       OR typeof(run_id) <> 'text' OR ended NOT IN ('finalize', 'exit', 'abort', 'running')
       OR world_rank NOT BETWEEN 0 AND world_size - 1 OR world_size > 1 << 24
       OR min(start_unix_ns, start_monotonic_ns, counted_ns, dropped_calls, untracked_requests, folded_cells, folded_communicators,
              cost_init_ns, cost_finalize_ns, cost_per_call_ps) < 0
       OR max(start_unix_ns, start_monotonic_ns, counted_ns, dropped_calls, untracked_requests, folded_cells, folded_communicators,
              cost_init_ns, cost_finalize_ns, cost_per_call_ps) > 1 << 62
       OR (end_unix_ns IS NOT NULL AND (typeof(end_unix_ns) <> 'integer' OR end_unix_ns NOT BETWEEN 0 AND 1 << 62))
       OR (wall_ns IS NOT NULL AND (typeof(wall_ns) <> 'integer' OR wall_ns NOT BETWEEN 0 AND 1 << 62))
       OR (reset_unix_ns IS NOT NULL AND (typeof(reset_unix_ns) <> 'integer' OR reset_unix_ns NOT BETWEEN 0 AND 1 << 62))
       OR gpu_state NOT IN ('none', 'dormant', 'tracing', 'paused', 'yielded', 'refused', 'stopped')
       OR typeof(gpu_records) || typeof(gpu_dropped_records) || typeof(gpu_implausible_records) || typeof(gpu_late_records)
          <> 'integerintegerintegerinteger'
       OR typeof(gpu_unattributed_records) || typeof(gpu_lost_intervals) || typeof(gpu_unmatched_operations) <> 'integerintegerinteger'
       OR typeof(gpu_memory_kind_queries) || typeof(gpu_memory_kind_changes) || typeof(cost_gpu_begin_ns) || typeof(cost_gpu_end_ns)
          <> 'integerintegerintegerinteger'
       OR min(gpu_records, gpu_dropped_records, gpu_implausible_records, gpu_late_records, gpu_unattributed_records, gpu_lost_intervals,
              gpu_unmatched_operations, gpu_memory_kind_queries, gpu_memory_kind_changes, cost_gpu_begin_ns, cost_gpu_end_ns) < 0
       OR max(gpu_records, gpu_dropped_records, gpu_implausible_records, gpu_late_records, gpu_unattributed_records, gpu_lost_intervals,
              gpu_unmatched_operations, gpu_memory_kind_queries, gpu_memory_kind_changes, cost_gpu_begin_ns, cost_gpu_end_ns) > 1 << 62
)
UNION ALL
SELECT 'fact'
WHERE EXISTS (
    SELECT 1 FROM source.fact WHERE typeof(world_rank) || typeof(key) || typeof(value) <> 'integertexttext'
)
UNION ALL
SELECT 'call'
WHERE EXISTS (SELECT 1 FROM source.call WHERE typeof(name) || typeof(family) <> 'texttext'
                      OR typeof(form) || typeof(bandwidth) || typeof(waits_for) <> 'texttexttext' OR library NOT IN ('mpi', 'nccl'))
UNION ALL
SELECT 'cell'
WHERE EXISTS (
    SELECT 1 FROM source.cell
    WHERE typeof(bytes) || typeof(count) || typeof(volume_bytes) || typeof(total_ns) || typeof(min_ns) || typeof(max_ns)
          || typeof(blocked_ns) <> 'integerintegerintegerintegerintegerintegerinteger'
       OR typeof(world_rank) || typeof(thread) || typeof(communicator) || typeof(region)
          <> 'integerintegerintegerinteger'
       OR typeof(call) <> 'text' OR measure NOT IN ('call', 'completion', 'poll', 'device', 'captured')
       OR memory_kind NOT IN (SELECT name FROM known_memory_kind)
       OR is_folded NOT IN (0, 1)
       OR min(bytes, count, volume_bytes, total_ns, min_ns, max_ns, blocked_ns) < 0
       OR max(bytes, count, volume_bytes, total_ns, min_ns, max_ns, blocked_ns) > 1 << 62
       OR min_ns > max_ns
)
UNION ALL
SELECT 'bucket'
WHERE :with_histograms AND EXISTS (
    SELECT 1 FROM source.bucket
    WHERE typeof(cell) || typeof(bucket) || typeof(count) <> 'integerintegerinteger'
       OR bucket NOT BETWEEN 0 AND 289 OR count NOT BETWEEN 0 AND 1 << 62
)
UNION ALL
SELECT 'communicator'
WHERE EXISTS (
    SELECT 1 FROM source.communicator
    WHERE typeof(identity) || typeof(name) || typeof(constructor) || typeof(members) <> 'texttexttexttext'
       OR typeof(parent_identity) NOT IN ('text', 'null')
       OR typeof(world_rank) || typeof(communicator) <> 'integerinteger'
       OR typeof(ordinal) || typeof(size) || typeof(remote_size) || typeof(comm_rank) || typeof(collectives)
          <> 'integerintegerintegerintegerinteger'
       OR is_inter NOT IN (0, 1) OR is_freed NOT IN (0, 1) OR library NOT IN ('mpi', 'nccl')
       OR min(ordinal, size, remote_size, collectives) < 0 OR max(ordinal, size, remote_size) > 1 << 32
       OR collectives > 1 << 62
       OR (sample_level IS NOT NULL AND (typeof(sample_level) <> 'integer' OR sample_level NOT BETWEEN 0 AND 62))
)
UNION ALL
SELECT 'recent_collective'
WHERE EXISTS (
    SELECT 1 FROM source.recent_collective
    WHERE typeof(world_rank) || typeof(communicator) || typeof(sequence) <> 'integerintegerinteger'
       OR typeof(call) <> 'text' OR sequence NOT BETWEEN 1 AND 1 << 62
       OR (bytes IS NOT NULL AND (typeof(bytes) <> 'integer' OR bytes NOT BETWEEN 0 AND 1 << 62))
       OR (root IS NOT NULL AND typeof(root) <> 'integer')
)
UNION ALL
SELECT 'thread'
WHERE EXISTS (
    SELECT 1 FROM source.thread
    WHERE typeof(world_rank) || typeof(thread) || typeof(tid) || typeof(doing_communicator) || typeof(doing_since_ns)
          <> 'integerintegerintegerintegerinteger'
       OR typeof(name) || typeof(doing_call) || typeof(doing_request_call) <> 'texttexttext'
       OR is_main NOT IN (0, 1) OR doing_is_inside NOT IN (0, 1) OR doing_since_ns NOT BETWEEN 0 AND 1 << 62
       OR (doing_bytes IS NOT NULL AND (typeof(doing_bytes) <> 'integer' OR doing_bytes NOT BETWEEN 0 AND 1 << 62))
       OR (doing_peer IS NOT NULL AND typeof(doing_peer) <> 'integer')
       OR (doing_tag IS NOT NULL AND typeof(doing_tag) <> 'integer')
)
UNION ALL
SELECT 'peer'
WHERE EXISTS (
    SELECT 1 FROM source.peer
    WHERE typeof(world_rank) || typeof(communicator) || typeof(peer) || typeof(count) || typeof(bytes) || typeof(time_ns)
          <> 'integerintegerintegerintegerintegerinteger'
       OR communicator < 0 OR typeof(call) <> 'text' OR direction NOT IN ('sent', 'received')
       OR min(count, bytes, time_ns) < 0 OR max(count, bytes, time_ns) > 1 << 62
       OR peer NOT BETWEEN -1 AND 1 << 24
)
UNION ALL
SELECT 'sample'
WHERE :with_samples AND EXISTS (
    SELECT 1 FROM source.sample
    WHERE world_rank NOT IN (SELECT world_rank FROM source.rank)
       OR typeof(world_rank) || typeof(thread) || typeof(communicator) || typeof(start_ns) || typeof(end_ns) || typeof(region)
          <> 'integerintegerintegerintegerintegerinteger'
       OR typeof(call) || typeof(request_call) <> 'texttext' OR start_ns NOT BETWEEN 0 AND end_ns OR end_ns > 1 << 62
       OR (sequence IS NOT NULL AND (typeof(sequence) <> 'integer' OR sequence NOT BETWEEN 1 AND 1 << 62))
       OR (completed_ns IS NOT NULL AND (typeof(completed_ns) <> 'integer' OR completed_ns NOT BETWEEN start_ns AND 1 << 62))
       OR (bytes IS NOT NULL AND (typeof(bytes) <> 'integer' OR bytes NOT BETWEEN 0 AND 1 << 62))
       OR (peer IS NOT NULL AND (typeof(peer) <> 'integer' OR peer NOT BETWEEN -2 AND 1 << 24))
       OR (root IS NOT NULL AND typeof(root) <> 'integer')
       OR (device_end_ns IS NULL) + (device_start_ns IS NULL) + (is_shared IS NULL) NOT IN (0, 3)
       OR (device_end_ns IS NOT NULL AND (
               typeof(device_start_ns) || typeof(device_end_ns) <> 'integerinteger' OR is_shared NOT IN (0, 1)
               OR device_start_ns NOT BETWEEN 0 AND device_end_ns OR device_end_ns > 1 << 62))
       OR (tag IS NOT NULL AND (typeof(tag) <> 'integer' OR abs(tag) > 1 << 31))
       OR (number IS NOT NULL AND (typeof(number) <> 'integer' OR number NOT BETWEEN 1 AND 65535))
)
UNION ALL
SELECT 'sample_message'
WHERE :with_samples AND EXISTS (
    SELECT 1 FROM source.sample_message
    WHERE world_rank NOT IN (SELECT world_rank FROM source.rank)
       OR typeof(world_rank) || typeof(thread) || typeof(communicator) || typeof(start_ns) || typeof(end_ns)
          <> 'integerintegerintegerintegerinteger'
       OR typeof(call) <> 'text' OR direction NOT IN ('sent', 'received')
       OR start_ns NOT BETWEEN 0 AND end_ns OR end_ns > 1 << 62
       OR (completed_ns IS NOT NULL AND (typeof(completed_ns) <> 'integer' OR completed_ns NOT BETWEEN start_ns AND 1 << 62))
       OR (bytes IS NOT NULL AND (typeof(bytes) <> 'integer' OR bytes NOT BETWEEN 0 AND 1 << 62))
       OR (peer IS NOT NULL AND (typeof(peer) <> 'integer' OR peer NOT BETWEEN -2 AND 1 << 24))
       OR (tag IS NOT NULL AND (typeof(tag) <> 'integer' OR abs(tag) > 1 << 31))
       OR (number IS NOT NULL AND (typeof(number) <> 'integer' OR number NOT BETWEEN 1 AND 65535))
)
UNION ALL
SELECT 'sample_window'
WHERE :with_samples AND EXISTS (
    SELECT 1 FROM source.sample_window
    WHERE world_rank NOT IN (SELECT world_rank FROM source.rank)
       OR typeof(world_rank) || typeof(thread) || typeof(begin_ns) || typeof(end_ns) <> 'integerintegerintegerinteger'
       OR begin_ns NOT BETWEEN 0 AND end_ns OR end_ns > 1 << 62
)
UNION ALL
SELECT 'step'
WHERE :with_samples AND EXISTS (
    SELECT 1 FROM source.step
    WHERE world_rank NOT IN (SELECT world_rank FROM source.rank)
       OR typeof(world_rank) || typeof(step) || typeof(thread) || typeof(begin_ns) || typeof(end_ns)
          <> 'integerintegerintegerintegerinteger'
       OR step NOT BETWEEN 1 AND 1 << 62 OR begin_ns NOT BETWEEN 0 AND end_ns OR end_ns > 1 << 62
)
UNION ALL
SELECT 'region'
WHERE EXISTS (
    SELECT 1 FROM source.region WHERE typeof(world_rank) || typeof(region) || typeof(name) <> 'integerintegertext' OR region < 1
)
UNION ALL
SELECT 'region_span'
WHERE :with_samples AND EXISTS (
    SELECT 1 FROM source.region_span
    WHERE world_rank NOT IN (SELECT world_rank FROM source.rank)
       OR typeof(world_rank) || typeof(thread) || typeof(region) || typeof(begin_ns) || typeof(end_ns)
          <> 'integerintegerintegerintegerinteger'
       OR begin_ns NOT BETWEEN 0 AND end_ns OR end_ns > 1 << 62
)
UNION ALL
SELECT 'gpu_device'
WHERE EXISTS (
    SELECT 1 FROM source.gpu_device
    WHERE typeof(world_rank) || typeof(device) || typeof(number) <> 'integerintegerinteger'
       OR typeof(name) || typeof(uuid) <> 'texttext'
       OR typeof(kernels) || typeof(copies) || typeof(sets) <> 'integerintegerinteger'
       OR min(kernels, copies, sets) < 0 OR max(kernels, copies, sets) > 1 << 62
       OR (first_ns IS NOT NULL AND (typeof(first_ns) <> 'integer' OR first_ns NOT BETWEEN 0 AND 1 << 62))
       OR (last_ns IS NOT NULL AND (typeof(last_ns) <> 'integer' OR last_ns NOT BETWEEN 0 AND 1 << 62))
)
UNION ALL
SELECT 'gpu_busy'
WHERE EXISTS (
    SELECT 1 FROM source.gpu_busy
    WHERE typeof(world_rank) || typeof(device) || typeof(ns) <> 'integerintegerinteger' OR ns NOT BETWEEN 0 AND 1 << 62
       OR is_computing NOT IN (0, 1) OR is_communicating NOT IN (0, 1) OR is_copying NOT IN (0, 1) OR is_in_mpi NOT IN (0, 1)
)
UNION ALL
SELECT 'gpu_stream'
WHERE EXISTS (
    SELECT 1 FROM source.gpu_stream
    WHERE typeof(world_rank) || typeof(stream) || typeof(device) || typeof(context) || typeof(number)
          <> 'integerintegerintegerintegerinteger'
)
UNION ALL
SELECT 'gpu_kernel'
WHERE EXISTS (
    SELECT 1 FROM source.gpu_kernel
    WHERE typeof(world_rank) || typeof(kernel) || typeof(name) <> 'integerintegertext' OR is_communication NOT IN (0, 1)
)
UNION ALL
SELECT 'gpu_activity'
WHERE EXISTS (
    SELECT 1 FROM source.gpu_activity
    WHERE typeof(bytes) || typeof(count) || typeof(volume_bytes) || typeof(total_ns) || typeof(min_ns) || typeof(max_ns)
          <> 'integerintegerintegerintegerintegerinteger'
       OR typeof(world_rank) || typeof(stream) || typeof(kernel) <> 'integerintegerinteger'
       OR kind NOT IN ('kernel', 'copy', 'memset')
       OR copy NOT IN ('', 'to device', 'to host', 'on device', 'on host', 'to peer', 'other')
       OR is_graph NOT IN (0, 1) OR is_pageable NOT IN (0, 1) OR is_managed NOT IN (0, 1)
       OR min(bytes, count, volume_bytes, total_ns, min_ns, max_ns) < 0
       OR max(bytes, count, volume_bytes, total_ns, min_ns, max_ns) > 1 << 62
       OR min_ns > max_ns
)
UNION ALL
SELECT 'gpu_bucket'
WHERE :with_histograms AND EXISTS (
    SELECT 1 FROM source.gpu_bucket
    WHERE typeof(activity) || typeof(bucket) || typeof(count) <> 'integerintegerinteger'
       OR bucket NOT BETWEEN 0 AND 289 OR count NOT BETWEEN 0 AND 1 << 62
)
UNION ALL
SELECT 'nccl_algorithm'
WHERE EXISTS (
    SELECT 1 FROM source.nccl_algorithm
    WHERE typeof(world_rank) || typeof(communicator) || typeof(bytes) || typeof(channels) || typeof(count)
          <> 'integerintegerintegerintegerinteger'
       OR typeof(call) || typeof(algorithm) || typeof(protocol) <> 'texttexttext' OR is_folded NOT IN (0, 1)
       OR min(bytes, channels, count) < 0 OR max(bytes, channels, count) > 1 << 62
)
UNION ALL
SELECT 'gpu_tracing'
WHERE EXISTS (
    SELECT 1 FROM source.gpu_tracing
    WHERE typeof(world_rank) || typeof(begin_ns) || typeof(end_ns) || typeof(records) <> 'integerintegerintegerinteger'
       OR begin_ns NOT BETWEEN 0 AND end_ns OR end_ns > 1 << 62 OR records NOT BETWEEN 0 AND 1 << 62
       OR ended NOT IN ('goes on', 'duty', 'yielded', 'off', 'stopped', 'lost')
       OR (clock_error_ns IS NOT NULL AND (typeof(clock_error_ns) <> 'integer' OR clock_error_ns NOT BETWEEN 0 AND 1 << 62))
)
UNION ALL
SELECT 'gpu_sample'
WHERE :with_samples AND EXISTS (
    SELECT 1 FROM source.gpu_sample
    WHERE world_rank NOT IN (SELECT world_rank FROM source.rank)
       OR typeof(world_rank) || typeof(stream) || typeof(kernel) || typeof(communicator) || typeof(bytes)
          <> 'integerintegerintegerintegerinteger'
       OR typeof(start_ns) || typeof(end_ns) <> 'integerinteger'
       OR kind NOT IN ('kernel', 'copy', 'memset')
       OR copy NOT IN ('', 'to device', 'to host', 'on device', 'on host', 'to peer', 'other')
       OR is_graph NOT IN (0, 1) OR bytes NOT BETWEEN 0 AND 1 << 62
       OR start_ns NOT BETWEEN 0 AND end_ns OR end_ns > 1 << 62
)
UNION ALL
SELECT 'gpu_sample_window'
WHERE :with_samples AND EXISTS (
    SELECT 1 FROM source.gpu_sample_window
    WHERE world_rank NOT IN (SELECT world_rank FROM source.rank)
       OR typeof(world_rank) || typeof(stream) || typeof(begin_ns) || typeof(end_ns) <> 'integerintegerintegerinteger'
       OR begin_ns NOT BETWEEN 0 AND end_ns OR end_ns > 1 << 62
);
