-- For each root cause: what the ranks waited, by the rank that arrived last.
SELECT cause_rank, last_rank, total(caused_ns * factor) AS caused_ns
FROM late_scaled
JOIN late_cause USING (wait)
GROUP BY cause_rank, last_rank
ORDER BY caused_ns DESC, last_rank;
