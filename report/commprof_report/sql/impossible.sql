-- Which tables of a rank's file hold values that no run can have? (`source` is the attached file; 1 << 62 ns are 146 years.)
SELECT 'rank' AS name
WHERE EXISTS (
    SELECT 1 FROM source.rank
    WHERE typeof(world_rank) <> 'integer' OR typeof(world_size) <> 'integer' OR typeof(start_unix_ns) <> 'integer'
       OR typeof(run_id) <> 'text' OR typeof(ended) <> 'text'
       OR world_rank NOT BETWEEN 0 AND world_size - 1 OR world_size > 1 << 24
       OR (wall_ns IS NOT NULL AND (typeof(wall_ns) <> 'integer' OR wall_ns NOT BETWEEN 0 AND 1 << 62))
       OR (end_unix_ns IS NOT NULL AND typeof(end_unix_ns) <> 'integer')
       OR typeof(counted_ns) <> 'integer' OR counted_ns NOT BETWEEN 0 AND 1 << 62
       OR (reset_unix_ns IS NOT NULL AND typeof(reset_unix_ns) <> 'integer')
       OR typeof(pid) || typeof(thread_level) || typeof(abort_code) || typeof(clock_error_ppb)
          <> 'integerintegerintegerinteger'
       OR typeof(dropped_calls + untracked_requests + folded_cells + folded_communicators) <> 'integer'
       OR typeof(cost_init_ns + cost_finalize_ns + cost_per_call_ps) <> 'integer'
       OR min(dropped_calls, untracked_requests, folded_cells, folded_communicators) < 0
       OR max(dropped_calls, untracked_requests, folded_cells, folded_communicators) > 1 << 62
       OR min(cost_init_ns, cost_finalize_ns, cost_per_call_ps) < 0
       OR max(cost_init_ns, cost_finalize_ns, cost_per_call_ps) > 1 << 62
)
UNION ALL
SELECT 'cell'
WHERE EXISTS (
    SELECT 1 FROM source.cell
    WHERE typeof(bytes) || typeof(count) || typeof(volume_bytes) || typeof(total_ns) || typeof(min_ns) || typeof(max_ns)
          || typeof(blocked_ns) <> 'integerintegerintegerintegerintegerintegerinteger'
       OR typeof(world_rank) || typeof(thread) || typeof(communicator) || typeof(is_folded)
          <> 'integerintegerintegerinteger'
       OR typeof(call) || typeof(measure) || typeof(place) <> 'texttexttext'
       OR min(bytes, count, volume_bytes, total_ns, min_ns, max_ns, blocked_ns) < 0
       OR max(bytes, count, volume_bytes, total_ns, min_ns, max_ns, blocked_ns) > 1 << 62
       OR min_ns > max_ns
)
UNION ALL
SELECT 'bucket'
WHERE :with_histograms AND EXISTS (
    SELECT 1 FROM source.bucket
    WHERE typeof(bucket) <> 'integer' OR typeof(count) <> 'integer'
       OR bucket NOT BETWEEN 0 AND 289 OR count NOT BETWEEN 0 AND 1 << 62
)
UNION ALL
SELECT 'communicator'
WHERE EXISTS (
    SELECT 1 FROM source.communicator
    WHERE typeof(identity) || typeof(name) || typeof(constructor) || typeof(members) <> 'texttexttexttext'
       OR typeof(ordinal) || typeof(size) || typeof(remote_size) || typeof(comm_rank) || typeof(collectives)
          <> 'integerintegerintegerintegerinteger'
       OR min(ordinal, size, remote_size, collectives) < 0 OR max(ordinal, size, remote_size) > 1 << 32
       OR collectives > 1 << 62
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
    WHERE typeof(world_rank) || typeof(thread) || typeof(is_main) || typeof(doing_communicator) || typeof(doing_is_inside)
          || typeof(doing_since_ns) <> 'integerintegerintegerintegerintegerinteger'
       OR typeof(name) || typeof(doing_call) || typeof(doing_awaited) <> 'texttexttext'
       OR doing_is_inside NOT BETWEEN 0 AND 1 OR doing_since_ns NOT BETWEEN 0 AND 1 << 62
       OR (doing_bytes IS NOT NULL AND (typeof(doing_bytes) <> 'integer' OR doing_bytes NOT BETWEEN 0 AND 1 << 62))
       OR (doing_peer IS NOT NULL AND typeof(doing_peer) <> 'integer')
       OR (doing_tag IS NOT NULL AND typeof(doing_tag) <> 'integer')
)
UNION ALL
SELECT 'peer'
WHERE EXISTS (
    SELECT 1 FROM source.peer
    WHERE typeof(peer) || typeof(count) || typeof(bytes) || typeof(time_ns) <> 'integerintegerintegerinteger'
       OR typeof(call) || typeof(direction) <> 'texttext'
       OR min(count, bytes, time_ns) < 0 OR max(count, bytes, time_ns) > 1 << 62
       OR peer NOT BETWEEN -1 AND 1 << 24
);
