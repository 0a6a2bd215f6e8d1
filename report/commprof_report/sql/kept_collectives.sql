-- What did ranks do in the collectives that make them wait for each other, one collective after another? `members`: how many of the
-- communicator's ranks were read; where fewer have a sample somebody is not known, and nothing is said of that collective.
WITH member AS (
    SELECT world_rank, communicator, identity, comm_rank, count(*) OVER (PARTITION BY identity) AS members
    FROM communicator
    WHERE communicator > 1 AND NOT is_inter AND size > 1 AND identity IN (SELECT identity FROM selected_communicator)
)
SELECT identity, sequence, members, world_rank, sample.call, kind, is_blocking, sample.bytes, coalesce(comm_rank = root, 0) AS is_root,
       coalesce(region_name, '') AS region, start_ns, end_ns
FROM sample
JOIN synchronizing USING (call)
JOIN member USING (world_rank, communicator)
LEFT JOIN region_of USING (world_rank, region)
WHERE sequence IS NOT NULL AND sample.call IN (SELECT call FROM selected_call)
ORDER BY identity, sequence, comm_rank;
