-- When did each rank's collectives on the communicator that determines its steps end? For NCCL, as in stepping_calls.sql.
SELECT sample.world_rank, sequence,
       max(end_ns, CASE WHEN device_end_ns IS NULL THEN coalesce(completed_ns, 0)
                        WHEN identity IN (SELECT identity FROM timed_on_device) THEN device_end_ns
                        ELSE 0 END) AS end_ns
FROM sample
JOIN communicator USING (world_rank, communicator)
JOIN followed USING (world_rank, identity)
WHERE sequence IS NOT NULL
ORDER BY sample.world_rank, sequence;
