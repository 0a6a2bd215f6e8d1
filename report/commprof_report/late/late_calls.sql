-- For each call and communicator: how much is waiting, how much is transfer, and which rank is the root cause of most of the waiting?
-- Nonblocking operations: the calls that completed them. :families: names of communicators, an object in JSON by identity; those of one name
-- share rows.
WITH named AS (
    SELECT identity, coalesce(value, identity) AS name, coalesce(value, label) AS communicator, library
    FROM run_communicator
    LEFT JOIN json_each(:families) ON key = identity
),
split AS (
    SELECT identity, call, count(DISTINCT sequence) AS analysed,
           total(wait_ns * factor) AS wait_ns, total(transfer_ns * factor) AS transfer_ns,
           total(CASE WHEN is_estimate THEN (wait_ns + transfer_ns) * factor END) AS estimated_ns
    FROM late_scaled
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY identity, call
),
own AS (
    SELECT name, call, sum(analysed) AS analysed, sum(wait_ns) AS wait_ns, sum(transfer_ns) AS transfer_ns, sum(estimated_ns) AS estimated_ns
    FROM split
    JOIN named USING (identity)
    GROUP BY name, call
),
cost AS (
    SELECT name, call, cause_rank, total(caused_ns * factor) AS cost_ns,
           row_number() OVER (PARTITION BY name, call ORDER BY total(caused_ns * factor) DESC, cause_rank) AS place
    FROM late_scaled
    JOIN late_cause USING (wait)
    JOIN named USING (identity)
    WHERE cause_rank IS NOT NULL AND world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY name, call, cause_rank
),
top AS (
    SELECT name, call, cause_rank, cost_ns FROM cost WHERE place = 1 GROUP BY name, call -- one row each; it gets an index by that
),
timed AS (
    SELECT world_rank, identity, call, total_ns FROM late_exact
    UNION ALL
    SELECT world_rank, identity, call, (wait_ns + transfer_ns) * factor FROM late_scaled WHERE completion IS NOT NULL OR sequence < 0
),
made AS (
    SELECT name, min(communicator) AS communicator, min(identity) AS identity, min(library) AS library, call,
           CAST(round(total(total_ns)) AS INTEGER) AS total_ns, count(DISTINCT world_rank) AS ranks
    FROM timed
    JOIN named USING (identity)
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY name, call
)
SELECT made.call,
       communicator,
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
LEFT JOIN own ON own.name = made.name AND own.call = made.call
LEFT JOIN top ON top.name = made.name AND top.call = made.call
ORDER BY made.total_ns DESC, made.call, communicator;
