-- For each rank: how often did it arrive last or others wait for it, how long did they wait, how much of all waiting does it cause, directly and
-- through others, and how long did it wait itself? gain_ns: by how much the longest wait of another rank would shrink had this one not
-- been late.
WITH own AS (
    SELECT world_rank, sum(sequence > 0) AS collectives, sum(sequence < 0) AS message_calls,
           total(wait_ns * factor) AS wait_ns, total(transfer_ns * factor) AS transfer_ns
    FROM late_scaled
    GROUP BY world_rank
),
pair AS (
    SELECT last_rank, world_rank, total(wait_ns * factor) AS cost_ns, total(alone_ns * factor) AS alone_ns
    FROM late_scaled
    GROUP BY last_rank, world_rank
),
cost AS (
    SELECT last_rank AS world_rank, sum(cost_ns) AS cost_ns, sum(alone_ns) AS alone_ns
    FROM pair
    GROUP BY last_rank
),
last AS (
    SELECT world_rank, count(*) AS last_count
    FROM (
        SELECT identity, sequence, last_rank AS world_rank FROM late_scaled WHERE last_rank IS NOT NULL
        UNION
        SELECT identity, sequence, world_rank FROM late_scaled WHERE is_last
    )
    GROUP BY world_rank
),
caused_pair AS (
    SELECT cause_rank, world_rank, total(caused_ns * factor) AS caused_ns,
           total(CASE last_rank WHEN cause_rank THEN caused_ns * factor END) AS direct_ns,
           total(CASE WHEN world_rank <> cause_rank THEN alone_ns * caused_ns / wait_ns * factor END) AS alone_ns
    FROM late_scaled
    JOIN late_cause USING (wait)
    GROUP BY cause_rank, world_rank
),
caused AS (
    SELECT cause_rank AS world_rank, sum(caused_ns) AS caused_ns, sum(direct_ns) AS direct_ns, max(alone_ns) AS gain_ns
    FROM caused_pair
    GROUP BY cause_rank
)
SELECT rank.world_rank AS rank,
       host.value AS host,
       coalesce(collectives, 0) AS collectives,
       coalesce(message_calls, 0) AS message_calls,
       coalesce(last_count, 0) AS last_count,
       CAST(round(coalesce(cost_ns, 0)) AS INTEGER) AS cost_ns,
       CAST(round(coalesce(alone_ns, 0)) AS INTEGER) AS alone_ns,
       CAST(round(coalesce(caused_ns, 0)) AS INTEGER) AS caused_ns,
       CAST(round(coalesce(direct_ns, 0)) AS INTEGER) AS direct_ns,
       CAST(round(coalesce(gain_ns, 0)) AS INTEGER) AS gain_ns,
       CAST(round(coalesce(wait_ns, 0)) AS INTEGER) AS wait_ns,
       CAST(round(coalesce(transfer_ns, 0)) AS INTEGER) AS transfer_ns,
       wait_ns / nullif(wait_ns + transfer_ns, 0) AS wait_share
FROM rank
LEFT JOIN fact AS host ON host.world_rank = rank.world_rank AND host.key = 'host'
LEFT JOIN own ON own.world_rank = rank.world_rank
LEFT JOIN cost ON cost.world_rank = rank.world_rank
LEFT JOIN last ON last.world_rank = rank.world_rank
LEFT JOIN caused ON caused.world_rank = rank.world_rank
ORDER BY rank.world_rank;
