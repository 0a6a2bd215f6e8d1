-- Which communicators have counted collectives but no samples that all ranks have, and what is their share of the time in collectives?
-- All ranks have the blocks of 1024 collectives whose number, from 1, is a multiple of 2^level, with the highest level among them.
WITH used AS (
    SELECT identity, min(label) AS communicator, sum(total_ns) AS total_ns
    FROM cell
    JOIN communicator_of USING (world_rank, communicator)
    JOIN call ON call.name = cell.call
    WHERE measure = 'call' AND call.family IN ('collective', 'neighborhood') AND identity <> 'none'
    GROUP BY identity
),
made AS (
    SELECT identity, min(max(coalesce(sample_level, 63)), 40) AS level, max(collectives) AS collectives
    FROM communicator
    GROUP BY identity
)
SELECT communicator, total_ns, total_ns * 1.0 / nullif((SELECT sum(total_ns) FROM used), 0) AS share, (SELECT count(*) FROM used) AS communicators
FROM used
LEFT JOIN made USING (identity)
WHERE coalesce(level, 63) > 0 AND coalesce(collectives, 0) <= ((1 << coalesce(level, 40)) - 1) * 1024
  AND EXISTS (SELECT 1 FROM communicator WHERE sample_level IS NOT NULL)
ORDER BY total_ns DESC, communicator;
