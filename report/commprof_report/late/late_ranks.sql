-- For each rank: how often did it arrive last, how long did the others wait for it, and how long did it wait itself?
WITH own AS (
    SELECT world_rank, count(*) AS collectives, sum(is_last) AS last_count,
           total(wait_ns * factor) AS wait_ns, total(transfer_ns * factor) AS transfer_ns
    FROM late_call
    JOIN late_factor USING (world_rank, identity, call)
    GROUP BY world_rank
),
cost AS (
    SELECT last_rank AS world_rank, total(wait_ns * factor) AS cost_ns, total(alone_ns * factor) AS alone_ns
    FROM late_call
    JOIN late_factor USING (world_rank, identity, call)
    GROUP BY last_rank
),
started AS (
    SELECT last_rank AS world_rank, count(*) AS nonblocking_last
    FROM late_start
    GROUP BY last_rank
)
SELECT rank.world_rank AS rank,
       host.value AS host,
       coalesce(collectives, 0) AS collectives,
       coalesce(last_count, 0) AS last_count,
       last_count * 1.0 / collectives AS last_share,
       CAST(round(coalesce(cost_ns, 0)) AS INTEGER) AS cost_ns,
       CAST(round(coalesce(alone_ns, 0)) AS INTEGER) AS alone_ns,
       CAST(round(coalesce(wait_ns, 0)) AS INTEGER) AS wait_ns,
       CAST(round(coalesce(transfer_ns, 0)) AS INTEGER) AS transfer_ns,
       wait_ns / nullif(wait_ns + transfer_ns, 0) AS wait_share,
       coalesce(nonblocking_last, 0) AS nonblocking_last
FROM rank
LEFT JOIN fact AS host ON host.world_rank = rank.world_rank AND host.key = 'host'
LEFT JOIN own ON own.world_rank = rank.world_rank
LEFT JOIN cost ON cost.world_rank = rank.world_rank
LEFT JOIN started ON started.world_rank = rank.world_rank
ORDER BY rank.world_rank;
