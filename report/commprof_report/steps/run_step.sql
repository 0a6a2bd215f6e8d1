-- The steps of the run, one row for each rank and step, in the rank's own time.
DROP TABLE IF EXISTS temp.run_step;
CREATE TEMP TABLE run_step (
    step       INTEGER NOT NULL,  -- from 1; for marked steps, the program's own number
    world_rank INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL,
    is_warm_up INTEGER NOT NULL,
    is_outlier INTEGER NOT NULL,
    PRIMARY KEY (step, world_rank)
) WITHOUT ROWID;
DROP TABLE IF EXISTS temp.followed;
CREATE TEMP TABLE followed (world_rank INTEGER PRIMARY KEY, identity TEXT NOT NULL);
