-- How often were most tensors agreed on? Each one is, once a step; a name of its own in each step
-- once in all.
SELECT agreed
FROM negotiated_place
WHERE (world_rank, communicator) = (SELECT world_rank, communicator FROM negotiated_place GROUP BY 1, 2 ORDER BY total(agreed) DESC LIMIT 1)
GROUP BY agreed
ORDER BY agreed > 1 DESC, count(*) DESC, agreed DESC
LIMIT 1;
