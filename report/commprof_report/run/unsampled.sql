-- Which communicators have counted collectives but no sampled one, and what is their share of the time in collectives? Nothing if no
-- collective is sampled at all.
WITH used AS (
    SELECT identity, min(label) AS communicator, sum(total_ns) AS total_ns
    FROM cell
    JOIN communicator_of USING (world_rank, communicator)
    JOIN call ON call.name = cell.call
    WHERE measure = 'call' AND call.family IN ('collective', 'neighborhood') AND identity <> 'none'
    GROUP BY identity
),
sampled AS (
    SELECT DISTINCT identity
    FROM (SELECT DISTINCT world_rank, communicator FROM sample WHERE sequence IS NOT NULL)
    JOIN communicator USING (world_rank, communicator)
)
SELECT communicator, total_ns, total_ns * 1.0 / nullif((SELECT sum(total_ns) FROM used), 0) AS share, (SELECT count(*) FROM used) AS communicators
FROM used
WHERE identity NOT IN (SELECT identity FROM sampled) AND EXISTS (SELECT 1 FROM sampled)
ORDER BY total_ns DESC, communicator;
