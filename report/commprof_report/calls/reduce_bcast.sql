-- Among the recent collectives on each communicator, how often was a Reduce followed by a Bcast of the same size?
SELECT own.identity, first.bytes, count(*) AS pairs
FROM recent_collective AS first
JOIN recent_collective AS second
  ON second.world_rank = first.world_rank AND second.communicator = first.communicator
     AND second.sequence = first.sequence + 1 AND second.bytes = first.bytes
JOIN communicator AS own ON own.world_rank = first.world_rank AND own.communicator = first.communicator
WHERE first.call = 'MPI_Reduce' AND second.call = 'MPI_Bcast'
GROUP BY own.identity, first.bytes;
