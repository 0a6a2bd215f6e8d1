-- One row a rank and kept collective: how long it waited, and for whom. last_rank: the rank whose coming ended the wait (null: it did
-- not wait); where all wait for all, the last one to come, on its own row too. is_last: others waited for this rank, or all wait for all
-- and it came last. alone_ns: the part of wait_ns that was over had the last one come no later than the one before it.
-- is_estimate: the clocks did not tell; from durations.
DROP TABLE IF EXISTS temp.late_call;
CREATE TEMP TABLE late_call (
    identity TEXT NOT NULL, sequence INTEGER NOT NULL, world_rank INTEGER NOT NULL, call TEXT NOT NULL, bytes INTEGER,
    region TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, wait_ns INTEGER NOT NULL, transfer_ns INTEGER NOT NULL,
    alone_ns INTEGER NOT NULL, last_rank INTEGER, is_last INTEGER NOT NULL, is_estimate INTEGER NOT NULL
);

-- Which rank came last in a kept nonblocking collective; its waiting is elsewhere, in Wait and Test.
DROP TABLE IF EXISTS temp.late_start;
CREATE TEMP TABLE late_start (
    identity TEXT NOT NULL, sequence INTEGER NOT NULL, call TEXT NOT NULL, bytes INTEGER, region TEXT NOT NULL, last_rank INTEGER NOT NULL
);
