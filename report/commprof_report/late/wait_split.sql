-- One row for each rank of a sampled collective, and for each call that sent, received or completed messages: how long the rank waited, and
-- for which one. last_rank: the rank whose arrival ended the wait
-- (null: no wait); if all wait for all, the rank that arrived last, on its own row too. is_last: others waited for this rank, or all wait
-- for all and it arrived last. alone_ns: the part of wait_ns that would be saved if the last rank had arrived together with the rank
-- before it. is_estimate: derived from durations, because the clocks are not accurate enough.
-- completion: the call that completed requests, in which the rank waited (null: a blocking call). Such a row has the times and the region of
-- that call; its collective or message is the one that decided when the call could return. sequence: of a message, a negative number of its
-- own; is_last is 0 there.
-- wait_state: the kind of waiting, as docs/SCHEMA.md defines it (null: no wait). peer: of a message, its other rank, and peer_ns, when that
-- one posted its side, waited for or not.
DROP TABLE IF EXISTS temp.late_call;
CREATE TEMP TABLE late_call (
    identity TEXT NOT NULL, sequence INTEGER NOT NULL, world_rank INTEGER NOT NULL, call TEXT NOT NULL, bytes INTEGER,
    region TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, wait_ns INTEGER NOT NULL, transfer_ns INTEGER NOT NULL,
    alone_ns INTEGER NOT NULL, last_rank INTEGER, is_last INTEGER NOT NULL, is_estimate INTEGER NOT NULL,
    completion TEXT, wait_state TEXT, peer INTEGER, peer_ns INTEGER
);
