-- How many calls of which size were made on each communicator? For the whole run, whatever the filters.
SELECT identity, cell.call, coalesce(call.family, 'unknown') AS family, bytes, sum(count) AS count, sum(count * bytes) AS message_bytes
FROM cell
JOIN communicator_of USING (world_rank, communicator)
LEFT JOIN call ON call.name = cell.call
WHERE measure IN ('call', 'captured')
GROUP BY identity, cell.call, bytes;
