-- How many of NCCL's collectives that were kept are not known on the device, on one rank at least?
SELECT count(*)
FROM (
    SELECT DISTINCT identity, sequence
    FROM sample
    JOIN communicator USING (world_rank, communicator)
    WHERE library = 'nccl' AND sequence IS NOT NULL AND device_start_ns IS NULL AND size > 1
      AND call IN (SELECT call FROM synchronizing) AND call IN (SELECT call FROM selected_call)
      AND identity IN (SELECT identity FROM selected_communicator)
);
