-- How long does a message of each size take? One row per call, communicator, memory kind and size (or bin of sizes), and per rank if
-- :per_rank; and per measure: calls that only start an operation have a row for their own durations, which has no bandwidth, and one for the
-- operation: from start to completion of a nonblocking one, the time on the device of NCCL's. :families: names of communicators, an object in
-- JSON by identity; those of one name share rows.
DELETE FROM grouped_cell;
INSERT INTO grouped_cell
SELECT dense_rank() OVER (ORDER BY call, timed, coalesce(family.value, identity), memory_kind, bytes_low, bytes_high,
                                   CASE WHEN :per_rank THEN world_rank END),
       cell
FROM chosen_cell
LEFT JOIN (SELECT DISTINCT key, value FROM json_each(:families)) AS family ON family.key = identity;

WITH counted AS (
    SELECT sum(counted_ns) AS counted_ns FROM rank_wall WHERE world_rank IN (SELECT world_rank FROM selected_rank)
),
message AS (
    SELECT row, call, family, library, form, bandwidth, waits_for, timed, coalesce(value, label) AS label, min(identity) AS identity, min(size) AS size, memory_kind,
           bytes_low, bytes_high, max(is_folded) AS is_folded,
           CASE WHEN :per_rank THEN world_rank END AS rank,
           sum(count) AS count, sum(volume_bytes) AS volume_bytes, sum(count * bytes) AS message_bytes,
           sum(total_ns) AS total_ns, min(min_ns) AS min_ns, max(max_ns) AS max_ns, sum(blocked_ns) AS blocked_ns
    FROM grouped_cell
    JOIN chosen_cell USING (cell)
    LEFT JOIN (SELECT DISTINCT key, value FROM json_each(:families)) AS family ON family.key = identity
    GROUP BY row
),
moved AS (
    SELECT message.*,
           passes,
           coalesce(is_own, 0) AS is_own,
           CASE WHEN library = 'nccl' AND timed <> 'device' THEN NULL
                WHEN form = 'blocking' OR timed = 'completion'
                THEN message_bytes * 1.0 / count * CASE blocks WHEN 'n' THEN size WHEN '1' THEN 1 END
           END AS bandwidth_bytes
    FROM message
    LEFT JOIN bandwidth_rule USING (bandwidth)
),
rated AS (
    SELECT moved.*, bandwidth_bytes * 1e9 / nullif(total_ns * 1.0 / count, 0) AS algbw_bytes_per_s
    FROM moved
)
SELECT rated.call,
       label AS communicator,
       bytes_high AS bytes,
       count,
       volume_bytes,
       total_ns,
       total_ns * 1.0 / count AS mean_ns,
       min_ns,
       p50_ns,
       p95_ns,
       p99_ns,
       max_ns,
       algbw_bytes_per_s,
       CASE passes WHEN 0 THEN algbw_bytes_per_s
                   ELSE algbw_bytes_per_s * passes * (size - 1) / size
       END AS busbw_bytes_per_s,
       rank,
       family,
       identity,
       memory_kind,
       bytes_low,
       bytes_high,
       is_folded,
       is_own,
       bytes_low IS bytes_high AND bytes_low > 0 AND bytes_low & (bytes_low - 1) = 0 AS power_of_two,
       bandwidth_bytes,
       blocked_ns,
       CASE timed WHEN 'completion' THEN max(0, 1 - blocked_ns * 1.0 / nullif(total_ns, 0)) END AS overlap,
       library,
       timed AS measure,
       form,
       bandwidth,
       waits_for,
       CASE WHEN timed NOT IN ('device', 'completion') THEN total_ns * 1.0 / nullif(counted_ns, 0) END AS share_of_wall
FROM rated
CROSS JOIN counted
JOIN percentile USING (row)
ORDER BY total(total_ns) OVER (PARTITION BY rated.call) DESC, rated.call, size DESC, label, bytes_low, memory_kind,
         timed <> 'device', timed, rank;
