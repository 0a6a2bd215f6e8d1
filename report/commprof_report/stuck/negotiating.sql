-- What has each rank that has not ended counted of its negotiations, and for how long does it wait for tensors of others (null: it does not)?
SELECT world_rank AS rank, thread, label AS communicator, identity, rounds, rounds_ahead, ahead_ns,
       last_offered - last_agreed AS tensors,
       start_unix_ns + ahead_since_ns AS since_unix_ns,
       max(max(rank_wall.wall_ns, last_ns) - ahead_since_ns, 0) AS waited_ns,
       ended = 'running' AS is_open
FROM negotiation
JOIN rank USING (world_rank)
JOIN rank_wall USING (world_rank)
JOIN communicator_of USING (world_rank, communicator)
WHERE world_rank IN (SELECT world_rank FROM selected_rank) AND rounds > 0
ORDER BY identity, world_rank, thread;
