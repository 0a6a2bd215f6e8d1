-- For each call, communicator and size: how far apart do the ranks arrive, and how long does it take from the last arrival to the last return?
-- That time is free of late arrivals: it is the library's own, and so is the bus bandwidth over its median. A rooted
-- collective has none, because data may move before the last arrival. Nonblocking collectives, messages
-- and estimates are left out.
WITH collective AS (
    SELECT identity, call, bytes, sequence, max(start_ns) - min(start_ns) AS skew_ns, max(max(end_ns) - max(start_ns), 0) AS last_ns
    FROM late_call
    WHERE completion IS NULL AND sequence > 0 AND NOT is_estimate
    GROUP BY identity, call, bytes, sequence
),
ordered AS (
    SELECT *,
           row_number() OVER (size ORDER BY skew_ns) AS skew_place,
           row_number() OVER (size ORDER BY last_ns) AS last_place,
           count(*) OVER size AS collectives
    FROM collective
    WINDOW size AS (PARTITION BY identity, call, bytes)
),
waited AS (
    SELECT identity, call, bytes, total(wait_ns * factor) / nullif(total((wait_ns + transfer_ns) * factor), 0) AS wait_share
    FROM late_scaled
    WHERE completion IS NULL AND sequence > 0
    GROUP BY identity, call, bytes
),
sized AS (
    SELECT ordered.call, label AS communicator, ordered.identity, ordered.bytes, collectives,
           min(CASE WHEN 100 * skew_place >= 50 * collectives THEN skew_ns END) AS skew_p50_ns,
           min(CASE WHEN 100 * skew_place >= 95 * collectives THEN skew_ns END) AS skew_p95_ns,
           min(CASE WHEN 100 * last_place >= 50 * collectives THEN last_ns END) AS transfer_p50_ns,
           min(CASE WHEN 100 * last_place >= 95 * collectives THEN last_ns END) AS transfer_p95_ns,
           min(CASE WHEN 100 * last_place >= 99 * collectives THEN last_ns END) AS transfer_p99_ns,
           waited.wait_share,
           size AS ranks,
           bandwidth
    FROM ordered
    JOIN run_communicator USING (identity)
    JOIN call ON call.name = ordered.call
    LEFT JOIN waited ON waited.identity = ordered.identity AND waited.call = ordered.call AND waited.bytes IS ordered.bytes
    GROUP BY ordered.identity, ordered.call, ordered.bytes
)
SELECT sized.*,
       bytes * CASE blocks WHEN 'n' THEN ranks WHEN '1' THEN 1 END * 1e9 / nullif(transfer_p50_ns, 0)
       * CASE passes WHEN 0 THEN 1 ELSE passes * (ranks - 1.0) / ranks END AS busbw_bytes_per_s
FROM sized
JOIN call ON call.name = sized.call
LEFT JOIN bandwidth_rule ON bandwidth_rule.bandwidth = sized.bandwidth AND waits_for LIKE 'all%'
ORDER BY sized.call, communicator, bytes;
