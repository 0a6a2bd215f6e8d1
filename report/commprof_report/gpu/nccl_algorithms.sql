-- How did NCCL carry out its collectives? One row per call, communicator, size, algorithm, protocol and number of channels.
SELECT call,
       coalesce(label, '(unknown communicator)') AS communicator,
       CASE WHEN is_folded THEN bytes / 2 + 1 ELSE bytes END AS bytes_low,
       bytes AS bytes_high,
       algorithm,
       protocol,
       channels,
       count(DISTINCT world_rank) AS ranks,
       sum(count) AS count
FROM nccl_algorithm
LEFT JOIN communicator_of USING (world_rank, communicator)
WHERE world_rank IN (SELECT world_rank FROM selected_rank) AND count > 0
GROUP BY 1, 2, bytes, is_folded, algorithm, protocol, channels
ORDER BY 1, 2, bytes, is_folded, count DESC, algorithm, protocol, channels;
