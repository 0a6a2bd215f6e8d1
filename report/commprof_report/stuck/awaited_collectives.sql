-- Which collectives of :call has a rank begun on a communicator of which it may be waiting for one? Their sequences, oldest first.
SELECT sequence
FROM recent_collective AS recent
JOIN communicator AS own USING (world_rank, communicator)
WHERE own.world_rank = :rank AND own.identity = :identity AND recent.call = :call
  AND (:bytes IS NULL OR bytes IS NULL OR bytes = :bytes)
ORDER BY sequence;
