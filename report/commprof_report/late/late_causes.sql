-- What each late arrival cost, in order of time: the collective, and each root cause's part of what the others waited. arrival: a number for
-- each collective and rank that arrived last, and for each message whose ranks are compared. cause_rank: null, the cause is not known.
-- compared_ns: by what ranks are compared with each other: the cost; of a collective in which not all wait for all, and of a message, how late
-- each of its ranks is, in rows of their own without a cost; awaited_rank: of a message, the one that is judged by them. sampled_ns: the cost before it is scaled to all calls.
WITH compared AS (
    SELECT identity, sequence, avg(factor) AS factor
    FROM late_scaled
    WHERE (identity, sequence) IN (SELECT identity, sequence FROM late_compared)
    GROUP BY identity, sequence
),
part AS (
    SELECT late_scaled.call, identity, sequence, last_rank, cause_rank, start_ns + wait_ns AS arrival_ns, caused_ns,
           caused_ns * factor AS cost_ns, CASE WHEN kind = 'all' THEN caused_ns * factor ELSE 0.0 END AS compared_ns, NULL AS awaited_rank
    FROM late_scaled
    JOIN late_cause USING (wait)
    LEFT JOIN synchronizing ON synchronizing.call = late_scaled.call
    UNION ALL
    SELECT call, identity, sequence, NULL, world_rank, arrival_ns, 0.0, 0.0, late_ns * factor, awaited_rank
    FROM late_compared
    JOIN compared USING (identity, sequence)
)
SELECT call, identity, cause_rank, total(cost_ns) AS cost_ns, total(compared_ns) AS compared_ns, min(arrival_ns) AS arrival_ns,
       dense_rank() OVER (ORDER BY identity, sequence, CASE WHEN sequence > 0 OR last_rank IS NOT NULL THEN call END, last_rank) AS arrival,
       total(caused_ns) AS sampled_ns, awaited_rank, sequence < 0 AS is_message
FROM part
GROUP BY identity, sequence, call, last_rank, cause_rank
ORDER BY arrival_ns, arrival, cost_ns DESC;
