-- Both sides of each sampled message, channel by channel (communicator, sender, receiver, tag), in the order of posting. gone_ns: return of the call that completed it (null: not seen). is_buffered: the call cannot wait for the receiver.
SELECT identity,
       CASE direction WHEN 'sent' THEN message.world_rank ELSE peer END AS sender,
       CASE direction WHEN 'sent' THEN peer ELSE message.world_rank END AS receiver,
       tag,
       start_ns,
       direction = 'received' AS is_received,
       CASE WHEN form = 'blocking' THEN end_ns ELSE completed_ns END AS gone_ns,
       number, message.call, bytes,
       message.call LIKE '%bsend%' AS is_buffered
FROM message
JOIN call ON call.name = message.call
LEFT JOIN communicator USING (world_rank, communicator)
ORDER BY 1, 2, 3, 4, 5;
