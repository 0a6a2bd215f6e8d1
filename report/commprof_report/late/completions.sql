-- The sampled calls that complete requests, or send, receive or find a message and return when that is done. completion: null, the latter.
SELECT sample.world_rank, CASE family WHEN 'completion' THEN sample.call END AS completion, coalesce(region_name, '') AS region, start_ns, end_ns
FROM sample
JOIN call ON call.name = sample.call
LEFT JOIN region_of USING (world_rank, region)
WHERE family = 'completion' OR (family = 'point-to-point' AND form = 'blocking' AND bandwidth = 'one-way')
   OR (family = 'probe' AND waits_for = 'sender')
ORDER BY sample.world_rank, end_ns;
