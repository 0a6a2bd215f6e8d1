-- The begin of each rank's time on the common axis of the run, and its error bound (null: unknown). clock: the lowest rank that
-- reads the same clock; island: the lowest clock that the job's calls connect it with.
DROP TABLE IF EXISTS temp.aligned_rank;
CREATE TEMP TABLE aligned_rank (
    world_rank INTEGER PRIMARY KEY,
    origin_ns  INTEGER NOT NULL,
    error_ns   INTEGER,
    clock      INTEGER NOT NULL,
    island     INTEGER NOT NULL
);
