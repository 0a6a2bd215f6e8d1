-- How many collectives has each rank begun on each communicator, and which ones are on record, the oldest first? A rank without any has
-- one row. kind: for whom ranks wait in it, as in view synchronizing (null: not known). same_bytes, same_root: null if ranks may differ.
SELECT label AS communicator, own.identity, own.size + own.remote_size AS size,
       coalesce(nullif(own.members, ''), run_communicator.members) AS members,
       NOT own.is_freed AND own.size + own.remote_size > 1 AS is_open,
       own.world_rank AS rank, collectives AS begun, sequence, recent.call, bytes, root, kind,
       CASE WHEN NOT own.is_inter AND coalesce(bandwidth, '') <> 'own-size' THEN bytes END
           AS same_bytes,
       CASE WHEN NOT own.is_inter THEN root END AS same_root
FROM communicator AS own
JOIN run_communicator USING (identity)
LEFT JOIN recent_collective AS recent ON recent.world_rank = own.world_rank AND recent.communicator = own.communicator
LEFT JOIN synchronizing ON synchronizing.call = recent.call
LEFT JOIN call ON call.name = recent.call
WHERE own.communicator > 1 AND own.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY run_communicator.size DESC, label, own.identity, own.world_rank, sequence;
