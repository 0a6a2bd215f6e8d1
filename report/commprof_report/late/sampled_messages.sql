-- Both sides of each sampled message, and the blocking probes that found it, channel by channel (communicator, sender, receiver, tag), in the
-- order of posting. gone_ns: return of the call that completed it (null: not seen). is_buffered: the call cannot wait for the receiver.
SELECT identity,
       CASE direction WHEN 'sent' THEN message.world_rank ELSE peer END AS sender,
       CASE direction WHEN 'sent' THEN peer ELSE message.world_rank END AS receiver,
       tag,
       start_ns,
       end_ns,
       direction = 'received' AS is_received,
       CASE WHEN form = 'blocking' THEN end_ns ELSE completed_ns END AS gone_ns,
       number, message.call, bytes,
       message.call LIKE '%bsend%' AS is_buffered,
       0 AS is_probe
FROM message
JOIN call ON call.name = message.call
LEFT JOIN communicator USING (world_rank, communicator)
UNION ALL
SELECT identity, peer, world_rank, tag, start_ns, end_ns, 1, end_ns, number, sample.call, bytes, 0, 1
FROM sample
JOIN call ON call.name = sample.call
JOIN communicator USING (world_rank, communicator)
WHERE family = 'probe' AND waits_for = 'sender' AND number IS NOT NULL
ORDER BY 1, 2, 3, 4, 5;
