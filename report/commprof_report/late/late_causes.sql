-- What each late arrival cost, in order of time: the collective, and each root cause's part of what the others waited. arrival: a number for
-- each collective and rank that arrived last. cause_rank: null, the cause is not known.
SELECT call, identity, cause_rank, total(caused_ns * factor) AS cost_ns, min(start_ns + wait_ns) AS arrival_ns,
       dense_rank() OVER (ORDER BY identity, sequence, call, last_rank) AS arrival
FROM late_scaled
JOIN late_cause USING (wait)
GROUP BY identity, sequence, call, last_rank, cause_rank
ORDER BY arrival_ns, arrival, cost_ns DESC;
