-- How many calls of which size were made on each communicator? For the whole run, whatever the filters; without collectives of one rank, which
-- move nothing.
SELECT identity, cell.call, coalesce(call.family, 'unknown') AS family, bytes, sum(count) AS count, sum(count * bytes) AS message_bytes
FROM cell
JOIN communicator_of USING (world_rank, communicator)
LEFT JOIN call ON call.name = cell.call
WHERE measure IN ('call', 'captured') AND NOT (communicator_of.size IS 1 AND family IN ('collective', 'neighborhood'))
GROUP BY identity, cell.call, bytes;
