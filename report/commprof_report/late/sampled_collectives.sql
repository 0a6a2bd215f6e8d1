-- The samples of synchronizing collectives, in the order of collectives. `members`: how many of the communicator's ranks were read; a
-- collective with fewer samples than that is skipped, because a rank is missing. An NCCL collective lasts from the start of its kernel to
-- its end, on the device; without device times it is left out. Operations that share kernels count as one ncclGroup. The starts of persistent
-- collectives have sequences beyond all others.
WITH member AS (
    SELECT world_rank, communicator, identity, comm_rank, library, count(*) OVER (PARTITION BY identity) AS members
    FROM communicator
    WHERE communicator > 1 AND NOT is_inter AND size > 1
),
arrived AS (
    SELECT world_rank, communicator, sequence, call, bytes, root, region, start_ns, end_ns, completed_ns
    FROM sample
    JOIN member USING (world_rank, communicator)
    WHERE library = 'mpi' AND sequence IS NOT NULL AND call NOT IN (SELECT name FROM call WHERE form = 'persistent')
    UNION ALL
    SELECT world_rank, communicator, operation << 40 | number, call, bytes, root, 0, start_ns, end_ns, completed_ns
    FROM sample_start
    JOIN member USING (world_rank, communicator)
    UNION ALL
    SELECT world_rank, communicator, min(sequence), CASE WHEN is_shared THEN 'ncclGroup' ELSE call END, sum(bytes),
           CASE WHEN NOT is_shared THEN root END, region, device_start_ns, device_end_ns,
           NULL
    FROM sample
    JOIN member USING (world_rank, communicator)
    WHERE library = 'nccl' AND sequence IS NOT NULL AND device_start_ns IS NOT NULL AND device_end_ns IS NOT NULL
    GROUP BY world_rank, communicator, device_start_ns, device_end_ns, CASE WHEN is_shared THEN 0 ELSE sequence END
)
SELECT identity, sequence, members, world_rank, arrived.call, kind, wait_state, is_blocking, arrived.bytes, coalesce(comm_rank = root, 0) AS is_root,
       coalesce(region_name, '') AS region, start_ns, end_ns, completed_ns, library = 'nccl' AS is_nccl
FROM arrived
JOIN synchronizing USING (call)
JOIN member USING (world_rank, communicator)
LEFT JOIN region_of USING (world_rank, region)
ORDER BY identity, sequence, comm_rank;
