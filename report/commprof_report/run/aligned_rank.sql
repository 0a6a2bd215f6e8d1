-- Where each rank's time begins on the axis of the run, and how far that may be off (null: nobody knows). clock: the lowest rank that
-- reads the same clock; island: the lowest clock that the job's collectives connect it with.
DROP TABLE IF EXISTS temp.aligned_rank;
CREATE TEMP TABLE aligned_rank (
    world_rank INTEGER PRIMARY KEY,
    origin_ns  INTEGER NOT NULL,
    error_ns   INTEGER,
    clock      INTEGER NOT NULL,
    island     INTEGER NOT NULL
);
