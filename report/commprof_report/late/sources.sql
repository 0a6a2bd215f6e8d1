-- From which ranks does a rank receive in neighborhood collectives on a communicator?
SELECT world_rank, substr(key, length('sources.') + 1) AS identity, value AS members
FROM fact
WHERE key GLOB 'sources.*';
