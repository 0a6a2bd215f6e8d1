-- When did each rank's collectives on the communicator that tells its steps end?
SELECT sample.world_rank, sequence, max(end_ns, coalesce(completed_ns, 0)) AS end_ns
FROM sample
JOIN communicator USING (world_rank, communicator)
JOIN followed USING (world_rank, identity)
WHERE sequence IS NOT NULL
ORDER BY sample.world_rank, sequence;
