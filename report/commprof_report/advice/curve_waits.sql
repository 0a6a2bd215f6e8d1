-- How long do sampled collectives of each call, family, side and size last without waiting (the median), and which share is waiting?
WITH own AS (
    SELECT call, family, coalesce(side, '') AS side, bytes, identity, sequence, wait_ns, transfer_ns,
           row_number() OVER (PARTITION BY call, family, side, bytes ORDER BY transfer_ns) AS place,
           count(*) OVER (PARTITION BY call, family, side, bytes) AS calls
    FROM late_call
    JOIN curve_family USING (identity)
    LEFT JOIN curve_side USING (world_rank, identity, call)
    WHERE completion IS NULL
)
SELECT call, family, side, bytes, count(DISTINCT identity || ' ' || sequence) AS collectives,
       min(CASE WHEN 2 * place >= calls THEN transfer_ns END) AS transfer_p50_ns,
       total(wait_ns) / nullif(total(wait_ns + transfer_ns), 0) AS wait_share
FROM own
GROUP BY call, family, side, bytes;
