-- When did the two ranks of each split message arrive, the one at the call that completed its side, the other at the post of its side, and when
-- at the message before between the two in this call? Those of a rank in one call on a communicator in order of time.
SELECT identity, call, world_rank, sequence, start_ns AS arrival_ns, lag(start_ns) OVER before AS since_ns,
       peer, peer_ns, lag(peer_ns) OVER before AS peer_since_ns
FROM late_call
WHERE peer IS NOT NULL
WINDOW before AS (PARTITION BY identity, call, world_rank, peer ORDER BY start_ns)
ORDER BY identity, call, world_rank, start_ns;
