-- How late each rank would have been at a collective in which not all wait for all, or at a message, had it been the one to be waited for;
-- own_time.py.
DROP TABLE IF EXISTS temp.late_compared;
CREATE TEMP TABLE late_compared (
    identity TEXT NOT NULL, sequence INTEGER NOT NULL, call TEXT NOT NULL, world_rank INTEGER NOT NULL, arrival_ns INTEGER NOT NULL,
    late_ns INTEGER NOT NULL,
    awaited_rank INTEGER, -- null: any of them may have been waited for
    own_ns INTEGER -- what it did in its own time; null: awaited_rank was not compared with other ranks that are waited for there
);
