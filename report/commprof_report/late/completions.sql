-- The sampled calls that complete requests.
SELECT sample.world_rank, sample.call, start_ns, end_ns
FROM sample
JOIN call ON call.name = sample.call
WHERE family = 'completion'
ORDER BY sample.world_rank, end_ns;
