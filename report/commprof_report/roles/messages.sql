-- How much does each rank of the job send point-to-point to each other? For the whole run, whatever
-- the filters; if the sender's file was not read, as the receiver counted. Without pairs of ranks
-- between which all is control (traffic_class.sql), in either direction.
WITH message AS (
    SELECT direction, world_rank, peer, run_peer.count AS count, run_peer.bytes AS bytes,
           run_peer.bytes > run_peer.count * coalesce(threshold_bytes, 0) AS is_bulk
    FROM run_peer
    JOIN call ON call.name = run_peer.call
    LEFT JOIN control_size USING (call)
    WHERE family = 'point-to-point' AND peer >= 0 AND peer <> world_rank
), passed AS (
    SELECT world_rank AS sender, peer AS receiver, count, bytes, is_bulk
    FROM message
    WHERE direction = 'sent'
    UNION ALL
    SELECT peer, world_rank, count, bytes, is_bulk
    FROM message
    WHERE direction = 'received' AND peer NOT IN (SELECT world_rank FROM rank)
)
SELECT sender, receiver, sum(count) AS count, sum(bytes) AS bytes
FROM passed
WHERE (min(sender, receiver), max(sender, receiver)) IN (
    SELECT min(sender, receiver), max(sender, receiver) FROM passed WHERE is_bulk
)
GROUP BY sender, receiver
ORDER BY sender, receiver;
