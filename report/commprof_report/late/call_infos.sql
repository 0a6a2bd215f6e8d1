-- What is known of each call: whether ranks wait for each other in it, and how its bandwidth is computed (bandwidth_rule; null: not at all).
SELECT name AS call, library, family, form, waits_for, kind, coalesce(synchronizing.is_blocking, 0) AS is_blocking, call.bandwidth,
       CASE WHEN waits_for LIKE 'all%' THEN blocks END AS blocks, passes
FROM call
LEFT JOIN synchronizing ON synchronizing.call = call.name
LEFT JOIN bandwidth_rule ON bandwidth_rule.bandwidth = call.bandwidth;
