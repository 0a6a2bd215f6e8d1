-- How many collectives has each rank begun on each communicator with several members, and which was the last? One row per rank that
-- has used the communicator. kind: for whom ranks wait in it, as in view synchronizing (null: not known).
SELECT label AS communicator,
       own.identity,
       own.size + own.remote_size AS size,
       coalesce(nullif(own.members, ''), run_communicator.members) AS members,
       own.world_rank AS rank,
       collectives AS begun,
       recent.call,
       recent.bytes,
       recent.root,
       kind
FROM communicator AS own
JOIN run_communicator USING (identity)
LEFT JOIN recent_collective AS recent
       ON recent.world_rank = own.world_rank AND recent.communicator = own.communicator AND sequence = collectives
LEFT JOIN synchronizing USING (call)
WHERE own.communicator > 1 AND own.size + own.remote_size > 1 AND NOT is_freed
  AND own.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY run_communicator.size DESC, label, own.identity, own.world_rank;
