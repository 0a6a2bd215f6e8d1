-- How many calls of which size were made on each communicator, and how many bytes did they move?
-- For the whole run, whatever the filters. Collectives of one rank move nothing.
SELECT identity, cell.call, coalesce(call.family, 'unknown') AS family, bytes, sum(count) AS count,
       sum(CASE WHEN communicator_of.size IS 1 AND family IN ('collective', 'neighborhood') THEN 0
                ELSE count * bytes END) AS message_bytes
FROM cell
JOIN communicator_of USING (world_rank, communicator)
LEFT JOIN call ON call.name = cell.call
WHERE measure IN ('call', 'captured')
GROUP BY identity, cell.call, bytes;
