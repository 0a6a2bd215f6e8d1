-- How long do messages of each size take in all jobs, and how many are there? Classes reach to the
-- power of two, whose half begins the class.
WITH sums AS (
    SELECT call, high_bytes, measure, count(DISTINCT run) AS jobs, sum(calls) AS calls,
           sum(volume_bytes) AS volume_bytes,
           sum(total_ns) AS total_ns
    FROM size_rows
    WHERE measure <> 'captured' AND call LIKE (SELECT wanted_call FROM asked)
    GROUP BY call, high_bytes, measure
),
halves AS (
    SELECT call, high_bytes, measure, low_ns, high_ns, sum(calls) AS own
    FROM buckets
    WHERE call LIKE (SELECT wanted_call FROM asked)
    GROUP BY call, high_bytes, measure, low_ns, high_ns
),
running AS (
    SELECT call, high_bytes, measure, low_ns, high_ns, own,
           sum(own) OVER (PARTITION BY call, high_bytes, measure
                          ORDER BY low_ns ROWS UNBOUNDED PRECEDING) AS upto,
           sum(own) OVER (PARTITION BY call, high_bytes, measure) AS whole
    FROM halves
),
percentiles AS (
    SELECT call, high_bytes, measure,
           max(CASE WHEN upto - own < 0.5 * whole AND upto >= 0.5 * whole
                    THEN low_ns + (high_ns - low_ns) * ((0.5 * whole - upto + own) / own) END)
               AS p50_ns,
           max(CASE WHEN upto - own < 0.99 * whole AND upto >= 0.99 * whole AND whole >= 100
                    THEN low_ns + (high_ns - low_ns) * ((0.99 * whole - upto + own) / own) END)
               AS p99_ns
    FROM running
    GROUP BY call, high_bytes, measure
)
SELECT sums.call, sums.high_bytes, sums.measure, jobs, calls, volume_bytes,
       total_ns / 3.6e12 AS call_hours, total_ns * 1e0 / calls AS mean_ns,
       p50_ns, p99_ns
FROM sums
LEFT JOIN percentiles
    ON percentiles.call = sums.call AND percentiles.high_bytes = sums.high_bytes
    AND percentiles.measure = sums.measure
ORDER BY call_hours DESC, sums.call, sums.high_bytes, sums.measure;
