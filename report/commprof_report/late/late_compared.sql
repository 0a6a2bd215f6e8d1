-- How late each rank would have been at a collective in which not all wait for all, or at a message, had it been the one to be waited for;
-- own_time.py.
DROP TABLE IF EXISTS temp.late_compared;
CREATE TEMP TABLE late_compared (
    identity TEXT NOT NULL, sequence INTEGER NOT NULL, call TEXT NOT NULL, world_rank INTEGER NOT NULL, arrival_ns INTEGER NOT NULL,
    late_ns INTEGER NOT NULL
);
