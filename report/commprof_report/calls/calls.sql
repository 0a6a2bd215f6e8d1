-- How is the time inside MPI distributed over calls? Durations include unsuccessful polls. The operations that a nonblocking call
-- starts have columns of their own (completion_ns from start to completion, blocked_ns the part of it inside Wait and Test). NCCL's calls
-- have one row for the host (enqueueing on a stream), one for the device, one for calls captured into a graph.
DELETE FROM grouped_cell;
INSERT INTO grouped_cell SELECT dense_rank() OVER (ORDER BY call, timed), cell FROM chosen_cell WHERE NOT is_completion;

WITH counted AS (
    SELECT sum(counted_ns) AS counted_ns FROM rank_wall WHERE world_rank IN (SELECT world_rank FROM selected_rank)
),
made AS (
    SELECT row, call, family, library, timed, sum(count) AS count, sum(CASE measure WHEN 'poll' THEN count ELSE 0 END) AS polls,
           count(DISTINCT world_rank) AS ranks, sum(volume_bytes) AS volume_bytes, sum(total_ns) AS total_ns,
           min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM grouped_cell
    JOIN chosen_cell USING (cell)
    GROUP BY row
),
completed AS (
    SELECT call, sum(count) AS completions, sum(total_ns) AS completion_ns, sum(blocked_ns) AS blocked_ns,
           sum(CASE form WHEN 'persistent' THEN volume_bytes ELSE 0 END) AS moved_bytes
    FROM chosen_cell
    WHERE is_completion
    GROUP BY call
),
sized AS (
    SELECT call, timed, bytes, sum(total_ns) AS total_ns, max(is_folded) AS is_folded,
           row_number() OVER (PARTITION BY call, timed ORDER BY sum(total_ns) DESC, bytes DESC) AS place_of_size
    FROM chosen_cell
    WHERE NOT is_completion
    GROUP BY call, timed, bytes
)
SELECT made.call,
       family,
       count,
       polls,
       ranks,
       volume_bytes + coalesce(moved_bytes, 0) AS volume_bytes,
       made.total_ns,
       made.total_ns * 1.0 / count AS mean_ns,
       min_ns,
       p50_ns,
       p95_ns,
       p99_ns,
       max_ns,
       CASE WHEN made.timed <> 'device' THEN made.total_ns * 1.0 / nullif(counted_ns, 0) END AS share_of_wall,
       sized.bytes AS dominating_bytes,
       sized.total_ns * 1.0 / nullif(made.total_ns, 0) AS dominating_share,
       completions,
       completion_ns,
       blocked_ns,
       max(0, 1 - blocked_ns * 1.0 / nullif(completion_ns, 0)) AS overlap,
       library,
       made.timed AS measure
FROM made
JOIN percentile USING (row)
CROSS JOIN counted
LEFT JOIN sized ON sized.call = made.call AND sized.timed = made.timed AND place_of_size = 1
LEFT JOIN completed ON completed.call = made.call AND made.timed = 'call'
ORDER BY family = 'setup', made.total_ns DESC, made.call, made.timed;
