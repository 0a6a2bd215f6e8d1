-- Which ranks were on each node? Empty: it is not known.
SELECT coalesce(value, '') AS node, group_concat(rank.world_rank) AS ranks
FROM main.rank LEFT JOIN main.fact ON fact.world_rank = rank.world_rank AND key = 'host'
GROUP BY node ORDER BY node;
