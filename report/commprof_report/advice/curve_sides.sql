-- Which ranks were the root of a rooted collective, and which never? A rank that was both, or of which no call is sampled, has no row.
DROP TABLE IF EXISTS temp.curve_side;
CREATE TEMP TABLE curve_side AS
SELECT world_rank, identity, call, CASE max(comm_rank = root) WHEN 1 THEN 'at the root' ELSE 'off the root' END AS side
FROM sample
JOIN communicator USING (world_rank, communicator)
WHERE root IS NOT NULL
GROUP BY world_rank, identity, call
HAVING min(comm_rank = root) = max(comm_rank = root);

SELECT world_rank, identity, call, side FROM curve_side;
