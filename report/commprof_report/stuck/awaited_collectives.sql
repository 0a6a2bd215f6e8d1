-- Which collectives of :call, for one of which a rank may be waiting, has it begun on a communicator? Their sequence numbers, oldest first.
SELECT sequence
FROM recent_collective AS recent
JOIN communicator AS own USING (world_rank, communicator)
WHERE own.world_rank = :rank AND own.identity = :identity AND recent.call = :call
  AND (:bytes IS NULL OR bytes IS NULL OR bytes = :bytes)
ORDER BY sequence;
