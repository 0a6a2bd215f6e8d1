-- What each late arrival cost, in order of time: the collective, the rank that arrived last, what the others waited for it.
SELECT call, identity, last_rank, total(wait_ns * factor) AS cost_ns, min(start_ns + wait_ns) AS arrival_ns
FROM late_scaled
WHERE last_rank IS NOT NULL
GROUP BY identity, sequence, call, last_rank
ORDER BY arrival_ns, identity, sequence;
