-- How much does each rank of the job send point-to-point to each other? For the whole run, whatever the filters; if the sender's file
-- was not read, as the receiver counted. Without calls whose mean message traffic_class.sql calls control.
SELECT world_rank AS sender, peer AS receiver, sum(count) AS count, sum(bytes) AS bytes
FROM run_peer
JOIN call ON call.name = run_peer.call
LEFT JOIN control_size USING (call)
WHERE direction = 'sent' AND family = 'point-to-point' AND peer >= 0 AND peer <> world_rank
  AND run_peer.bytes > run_peer.count * coalesce(threshold_bytes, 0)
GROUP BY 1, 2
UNION ALL
SELECT peer, world_rank, sum(count), sum(bytes)
FROM run_peer
JOIN call ON call.name = run_peer.call
LEFT JOIN control_size USING (call)
WHERE direction = 'received' AND family = 'point-to-point' AND peer >= 0 AND peer NOT IN (SELECT world_rank FROM rank)
  AND run_peer.bytes > run_peer.count * coalesce(threshold_bytes, 0)
GROUP BY 1, 2
ORDER BY 1, 2;
