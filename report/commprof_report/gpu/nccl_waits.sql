-- How much of NCCL's time on the device was waiting for other ranks? One row per call and
-- communicator, of collectives in which all ranks depend on all. A kernel spins on the device until
-- the others have come, so the shortest kernel of an operation is transfer, and what the others
-- take beyond it is waiting. An operation counts if all ranks of the communicator have a sample of
-- it with times of the device. Operations that share a kernel are one ncclGroup, as in late.
WITH kernel AS (
    SELECT sample.world_rank, identity, size, min(sequence) AS sequence,
           CASE WHEN is_shared THEN 'ncclGroup' ELSE call END AS call,
           device_end_ns - device_start_ns AS device_ns
    FROM sample
    JOIN communicator USING (world_rank, communicator)
    WHERE library = 'nccl' AND size > 1 AND sequence IS NOT NULL
      AND device_start_ns IS NOT NULL AND device_end_ns IS NOT NULL
    GROUP BY sample.world_rank, communicator, device_start_ns, device_end_ns,
             CASE WHEN is_shared THEN 0 ELSE sequence END
),
operation AS (
    SELECT identity, sequence, min(kernel.call) AS call, min(device_ns) AS transfer_ns
    FROM kernel
    JOIN synchronizing ON synchronizing.call = kernel.call AND kind = 'all'
    GROUP BY identity, sequence
    HAVING count(*) = max(size) AND min(kernel.call) = max(kernel.call)
),
timed AS (
    SELECT identity, call, sum(total_ns) AS timed_ns
    FROM cell
    JOIN communicator USING (world_rank, communicator)
    WHERE measure = 'device' AND world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY identity, call
)
SELECT operation.call,
       coalesce(label, '(unknown communicator)') AS communicator,
       count(DISTINCT sequence) AS operations,
       count(DISTINCT world_rank) AS ranks,
       sum(device_ns) AS device_ns,
       sum(device_ns - transfer_ns) AS wait_ns,
       sum(transfer_ns) AS transfer_ns,
       sum(device_ns - transfer_ns) * 1.0 / nullif(sum(device_ns), 0) AS wait_share,
       min(1.0, sum(device_ns) * 1.0 / nullif(max(timed_ns), 0)) AS coverage
FROM operation
JOIN kernel USING (identity, sequence)
LEFT JOIN timed ON timed.identity = operation.identity AND timed.call = operation.call
LEFT JOIN run_communicator ON run_communicator.identity = operation.identity
WHERE world_rank IN (SELECT world_rank FROM selected_rank)
GROUP BY operation.identity, operation.call
ORDER BY wait_ns DESC, 1, 2;
