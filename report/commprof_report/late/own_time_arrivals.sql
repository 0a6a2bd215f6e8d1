-- When did each rank arrive at the collectives of the communicators of :identities (a list in JSON), and when did it return? In its own
-- time; NCCL's: on the device.
SELECT identity, world_rank, sequence, sample.call, library = 'nccl' AS is_nccl,
       CASE library WHEN 'nccl' THEN device_start_ns ELSE start_ns END AS come_ns,
       CASE library WHEN 'nccl' THEN device_end_ns ELSE end_ns END AS gone_ns
FROM sample
JOIN communicator USING (world_rank, communicator)
WHERE sequence IS NOT NULL AND identity IN (SELECT value FROM json_each(:identities))
ORDER BY identity, world_rank, sequence;
