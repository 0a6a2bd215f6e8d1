-- When did ranks begin to send sampled messages to others, and when had they received some?
SELECT world_rank AS rank, peer, direction = 'sent' AS is_sent,
       CASE direction WHEN 'sent' THEN start_ns ELSE coalesce(completed_ns, end_ns) END AS at_ns
FROM message
WHERE bytes > 0 AND peer >= 0
ORDER BY world_rank, at_ns;
