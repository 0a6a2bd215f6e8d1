-- Which collectives relate clocks? For each collective and clock: the first return (on that clock) that depends on other ranks' arrival,
-- and the last arrival on which other ranks' returns depend. In real time no such return precedes any such arrival. Empty messages
-- depend on nobody. Only one in :every collectives is used, always including the first one of each communicator.
WITH member AS (
    SELECT world_rank, communicator, comm_rank, dense_rank() OVER (ORDER BY identity) AS number
    FROM communicator
    WHERE communicator > 1 AND NOT is_inter AND size > 1
),
called AS (
    SELECT member.number, sequence, clock, sample.call, sample.root, kind,
           start_monotonic_ns + start_ns AS come_ns,
           start_monotonic_ns + CASE WHEN is_blocking THEN end_ns ELSE completed_ns END AS gone_ns,
           comm_rank = root AS is_root,
           bytes > 0 OR bandwidth = 'unrated' AS is_full, -- a Barrier
           bandwidth = 'own-size' AS is_own_size
    FROM sample
    JOIN call ON call.name = sample.call
    JOIN synchronizing USING (call)
    JOIN member USING (world_rank, communicator)
    JOIN rank_clock USING (world_rank)
    WHERE is_sure AND (sequence - 1) % :every = 0
)
SELECT number, sequence, clock,
       min(CASE WHEN (kind = 'all' AND (is_full OR is_own_size)) OR (kind = 'root-first' AND is_full AND NOT is_root)
                  OR (kind = 'root-last' AND is_root) THEN gone_ns END) AS first_gone_ns,
       max(CASE WHEN (kind = 'all' AND is_full) OR (kind = 'root-first' AND is_root)
                  OR (kind = 'root-last' AND is_full AND NOT is_root) THEN come_ns END) AS last_come_ns,
       min(call) AS least_call, max(call) AS most_call, min(coalesce(root, -1)) AS least_root, max(coalesce(root, -1)) AS most_root
FROM called
GROUP BY number, sequence, clock
ORDER BY number, sequence, clock;
