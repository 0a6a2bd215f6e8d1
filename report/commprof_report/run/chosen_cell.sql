-- Which cells did the user select, with their communicator, region and size in terms of the whole run? timed: what their times measure:
-- 'call' (including polls), 'completion'; for NCCL also 'device', and 'captured', which has moved nothing yet. is_call: 1 for calls.
CREATE TEMP VIEW chosen_cell AS
SELECT cell.cell, cell.world_rank, cell.thread, cell.call, coalesce(call.family, 'unknown') AS family,
       coalesce(call.library, 'mpi') AS library, coalesce(form, 'blocking') AS form, coalesce(bandwidth, 'unrated') AS bandwidth,
       coalesce(waits_for, 'nobody') AS waits_for, identity, label,
       communicator_of.size, cell.bytes, size_bin.bytes_low, size_bin.bytes_high, measure, memory_kind, cell.is_folded,
       CASE measure WHEN 'poll' THEN 'call' ELSE measure END AS timed, measure IN ('call', 'poll', 'captured') AS is_call,
       measure = 'completion' AS is_completion, region_name AS region, cell.count,
       CASE measure WHEN 'captured' THEN 0 ELSE volume_bytes END AS volume_bytes, total_ns, min_ns, max_ns, blocked_ns
FROM cell
JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region)
JOIN size_bin ON size_bin.bytes = cell.bytes AND size_bin.is_folded = cell.is_folded
LEFT JOIN call ON call.name = cell.call
WHERE cell.call IN (SELECT call FROM selected_call)
  AND cell.world_rank IN (SELECT world_rank FROM selected_rank)
  AND identity IN (SELECT identity FROM selected_communicator)
  AND region_name IN (SELECT region_name FROM selected_region)
  AND memory_kind IN (SELECT memory_kind FROM selected_memory_kind);

-- The range of sizes that the user selected, for single calls; null: no bound.
CREATE TEMP TABLE selected_size AS SELECT :low_bytes AS low_bytes, :high_bytes AS high_bytes;

-- Percentiles of the groups of cells in table grouped_cell(row, cell), which each query fills itself: within the first bucket at which
-- the share is reached, as if its calls were spread evenly in it, between the least and the most duration (base/percentiles.py has the same for
-- Python). Null if fewer calls: p95 needs 20, p99 needs 100.
CREATE TEMP TABLE grouped_cell (row INTEGER NOT NULL, cell INTEGER NOT NULL);
CREATE TEMP VIEW percentile AS
WITH summed AS (
    SELECT row, bucket, sum(bucket.count) AS count
    FROM grouped_cell
    JOIN bucket USING (cell)
    GROUP BY row, bucket
),
spread AS (
    SELECT row, min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM grouped_cell
    JOIN cell USING (cell)
    GROUP BY row
),
running AS (
    SELECT row, max(low_ns, min_ns) AS low_ns, min(coalesce(high_ns, max_ns), max_ns) AS high_ns,
           100 * total(count) OVER (PARTITION BY row ORDER BY bucket) AS upto,
           100 * count AS own,
           total(count) OVER (PARTITION BY row) AS whole
    FROM summed
    JOIN spread USING (row)
    JOIN bucket_bound USING (bucket)
)
SELECT row,
       max(CASE WHEN upto - own < 50 * whole AND upto >= 50 * whole THEN low_ns + (high_ns - low_ns) * (50 * whole - upto + own) / own END) AS p50_ns,
       max(CASE WHEN upto - own < 95 * whole AND upto >= 95 * whole AND (100 - 95) * whole >= 100
                THEN low_ns + (high_ns - low_ns) * (95 * whole - upto + own) / own END) AS p95_ns,
       max(CASE WHEN upto - own < 99 * whole AND upto >= 99 * whole AND (100 - 99) * whole >= 100
                THEN low_ns + (high_ns - low_ns) * (99 * whole - upto + own) / own END) AS p99_ns
FROM running
GROUP BY row;
