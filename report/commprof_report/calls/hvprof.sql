-- How many calls carried messages of each size class (table hvprof_class), and how long did they take? One row per call and class, and
-- per rank if :per_rank; separate rows for NCCL's times on the host and on the device.
DELETE FROM grouped_cell;
INSERT INTO grouped_cell
SELECT dense_rank() OVER (ORDER BY call, timed, low_bytes, CASE WHEN :per_rank THEN world_rank END), cell
FROM chosen_cell
JOIN hvprof_class ON bytes BETWEEN low_bytes AND coalesce(high_bytes, bytes)
WHERE NOT is_completion AND bandwidth <> 'silent';

WITH carried AS (
    SELECT row, call, family, library, timed, low_bytes, high_bytes,
           CASE WHEN :per_rank THEN world_rank END AS rank, count(DISTINCT world_rank) AS ranks,
           count(DISTINCT bytes) AS sizes, min(bytes) AS smallest_bytes, max(bytes) AS largest_bytes,
           sum(count) AS count, sum(count * bytes) AS message_bytes, sum(total_ns) AS total_ns,
           min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM grouped_cell
    JOIN chosen_cell USING (cell)
    JOIN hvprof_class ON bytes BETWEEN low_bytes AND coalesce(high_bytes, bytes)
    GROUP BY row
)
SELECT :fusion AS fusion,
       upper(library) AS library,
       call,
       family,
       rank,
       low_bytes AS bytes_low,
       high_bytes AS bytes_high,
       ranks,
       count,
       sizes,
       smallest_bytes,
       largest_bytes,
       message_bytes,
       total_ns,
       total_ns * 1.0 / count AS mean_ns,
       min_ns,
       p50_ns,
       p99_ns,
       max_ns,
       call IN (SELECT name FROM call WHERE form <> 'blocking') AS is_start,
       total_ns * 1.0 / nullif(total(total_ns) OVER (PARTITION BY call, timed, rank), 0) AS share_of_call,
       timed AS measure
FROM carried
JOIN percentile USING (row)
ORDER BY total(total_ns) OVER (PARTITION BY call) DESC, call, timed <> 'device', timed, rank, low_bytes;
