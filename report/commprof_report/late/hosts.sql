-- The host of each rank.
SELECT rank.world_rank, host.value
FROM rank
LEFT JOIN fact AS host ON host.world_rank = rank.world_rank AND host.key = 'host'
ORDER BY rank.world_rank;
