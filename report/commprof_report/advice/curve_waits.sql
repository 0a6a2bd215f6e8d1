-- How long do sampled collectives and messages of each call, family, side, place and size last without waiting (quartiles), and which share
-- is waiting? Place: a call follows a pause if its rank made no call before it for longer than such calls last in the median, and for longer than
-- the fastest of its size lasts; all other calls are in a burst. Calls after a pause are slower for another reason than their size: other ranks
-- are not on a core, caches hold other data.
WITH own AS (
    SELECT call, family, coalesce(side, '') AS side, bytes, identity, sequence, wait_ns, transfer_ns, completion,
           start_ns - lag(end_ns) OVER (PARTITION BY world_rank ORDER BY start_ns) AS pause_ns
    FROM late_call
    JOIN curve_family USING (identity)
    LEFT JOIN curve_side USING (world_rank, identity, call)
),
ordered AS (
    SELECT *,
           row_number() OVER (PARTITION BY call, family, side ORDER BY transfer_ns) AS place,
           count(*) OVER (PARTITION BY call, family, side) AS calls,
           min(transfer_ns) OVER (PARTITION BY call, family, side, bytes) AS transfer_min_ns
    FROM own
    WHERE completion IS NULL
),
typical AS (
    SELECT call, family, side, min(transfer_ns) AS transfer_p50_ns FROM ordered WHERE 2 * place >= calls GROUP BY call, family, side
),
placed AS (
    SELECT call, family, side, bytes, identity, sequence, wait_ns, transfer_ns,
           coalesce(pause_ns > max(transfer_p50_ns, transfer_min_ns), 1) AS follows_pause
    FROM ordered
    JOIN typical USING (call, family, side)
),
ranked AS (
    SELECT *,
           row_number() OVER (PARTITION BY call, family, side, follows_pause, bytes ORDER BY transfer_ns) AS place,
           count(*) OVER (PARTITION BY call, family, side, follows_pause, bytes) AS calls
    FROM placed
)
SELECT call, family, side, bytes, follows_pause, calls, count(DISTINCT identity || ' ' || sequence) AS collectives,
       min(transfer_ns) AS transfer_min_ns,
       min(CASE WHEN 4 * place >= calls THEN transfer_ns END) AS transfer_p25_ns,
       min(CASE WHEN 2 * place >= calls THEN transfer_ns END) AS transfer_p50_ns,
       min(CASE WHEN 4 * place >= 3 * calls THEN transfer_ns END) AS transfer_p75_ns,
       total(wait_ns) AS wait_ns,
       total(transfer_ns) AS transfer_ns
FROM ranked
GROUP BY call, family, side, bytes, follows_pause;
