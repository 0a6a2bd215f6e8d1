-- How did NCCL carry out its collectives of each size? The most frequent way comes last.
SELECT call, identity, bytes, algorithm, protocol, channels
FROM nccl_algorithm
JOIN communicator_of USING (world_rank, communicator)
WHERE NOT is_folded AND count > 0
GROUP BY call, identity, bytes, algorithm, protocol, channels
ORDER BY sum(count), algorithm, protocol, channels;
