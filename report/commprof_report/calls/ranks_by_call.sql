-- Is a call's time distributed evenly over the ranks that make it, and which ranks have the least and the most? Separate rows for NCCL's
-- calls on the host, operations on the device, and calls captured into a graph.
WITH by_rank AS (
    SELECT call, family, library, timed, world_rank, sum(count) AS count, sum(total_ns) AS total_ns
    FROM chosen_cell
    WHERE NOT is_completion
    GROUP BY call, timed, world_rank
),
ordered AS (
    SELECT *,
           row_number() OVER (PARTITION BY call, timed ORDER BY total_ns, world_rank) AS from_least,
           row_number() OVER (PARTITION BY call, timed ORDER BY total_ns DESC, world_rank) AS from_most
    FROM by_rank
)
SELECT call,
       family,
       count(*) AS ranks,
       sum(count) AS count,
       min(count) AS min_count,
       max(count) AS max_count,
       sum(total_ns) AS total_ns,
       min(total_ns) AS min_total_ns,
       max(CASE WHEN from_least = 1 THEN world_rank END) AS min_rank,
       avg(total_ns) AS mean_total_ns,
       max(total_ns) AS max_total_ns,
       max(CASE WHEN from_most = 1 THEN world_rank END) AS max_rank,
       max(total_ns) / nullif(avg(total_ns), 0) AS imbalance,
       library,
       timed AS measure
FROM ordered
GROUP BY call, timed
ORDER BY family = 'setup', sum(total_ns) DESC, call, timed;
