-- How many sampled NCCL collectives lack device times on at least one rank?
SELECT count(*)
FROM (
    SELECT DISTINCT identity, sequence
    FROM sample
    JOIN communicator USING (world_rank, communicator)
    WHERE library = 'nccl' AND sequence IS NOT NULL AND device_start_ns IS NULL AND size > 1
      AND call IN (SELECT call FROM synchronizing) AND call IN (SELECT call FROM selected_call)
      AND identity IN (SELECT identity FROM selected_communicator)
);
