-- How many sampled collectives had which root on each communicator?
SELECT identity, call, root, count(*) AS calls, count(DISTINCT world_rank) AS ranks
FROM sample
JOIN communicator_of USING (world_rank, communicator)
JOIN call ON call.name = sample.call
WHERE family = 'collective' AND root IS NOT NULL
GROUP BY identity, call, root
ORDER BY identity, call, root;
