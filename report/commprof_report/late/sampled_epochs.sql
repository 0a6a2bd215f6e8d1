-- The partners of the sampled calls that open and close epochs of post, start, complete and wait, on communicators that are known. none: a number that nothing else has
-- (columns.NONE).
SELECT world_rank, call, identity, object, coalesce(peer, none) AS peer, coalesce(number, none) AS number, partners, start_ns, end_ns
FROM (SELECT -(1 << 62) AS none)
CROSS JOIN sample_epoch
JOIN communicator_of USING (world_rank, communicator)
WHERE communicator > 1;
