-- For each call and communicator: how much is waiting, how much is transfer, and which rank is the root cause of most of the waiting?
-- Nonblocking operations: the calls that completed them.
WITH own AS (
    SELECT identity, call, count(DISTINCT sequence) AS analysed,
           total(wait_ns * factor) AS wait_ns, total(transfer_ns * factor) AS transfer_ns,
           total(CASE WHEN is_estimate THEN (wait_ns + transfer_ns) * factor END) AS estimated_ns
    FROM late_scaled
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY identity, call
),
cost AS (
    SELECT identity, call, cause_rank, total(caused_ns * factor) AS cost_ns,
           row_number() OVER (PARTITION BY identity, call ORDER BY total(caused_ns * factor) DESC, cause_rank) AS place
    FROM late_scaled
    JOIN late_cause USING (wait)
    WHERE cause_rank IS NOT NULL AND world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY identity, call, cause_rank
),
timed AS (
    SELECT world_rank, identity, call, total_ns FROM late_exact
    UNION ALL
    SELECT world_rank, identity, call, (wait_ns + transfer_ns) * factor FROM late_scaled WHERE completion IS NOT NULL OR sequence < 0
),
made AS (
    SELECT identity, call, CAST(round(total(total_ns)) AS INTEGER) AS total_ns, count(DISTINCT world_rank) AS ranks
    FROM timed
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY identity, call
)
SELECT made.call,
       label AS communicator,
       made.identity,
       made.ranks,
       made.total_ns,
       coalesce(analysed, 0) AS collectives,
       CAST(round(wait_ns) AS INTEGER) AS wait_ns,
       CAST(round(transfer_ns) AS INTEGER) AS transfer_ns,
       wait_ns / nullif(wait_ns + transfer_ns, 0) AS wait_share,
       estimated_ns / nullif(wait_ns + transfer_ns, 0) AS estimate_share,
       cause_rank AS top_rank,
       CAST(round(cost_ns) AS INTEGER) AS top_cost_ns,
       library
FROM made
JOIN run_communicator ON run_communicator.identity = made.identity
LEFT JOIN own ON own.identity = made.identity AND own.call = made.call
LEFT JOIN cost ON cost.identity = made.identity AND cost.call = made.call AND place = 1
ORDER BY made.total_ns DESC, made.call, label;
