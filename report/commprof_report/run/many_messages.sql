-- The pairs of ranks with more messages than there are numbers: the sender's or the receiver's rank, which of them, and the other one.
SELECT world_rank, direction = 'received' AS is_received, peer
FROM peer
GROUP BY world_rank, direction, peer
HAVING sum(count) > :numbers;
