-- The steps whose calls are also counted apart.
DROP TABLE IF EXISTS temp.hvprof_step;
CREATE TEMP TABLE hvprof_step (
    world_rank INTEGER, begin_ns INTEGER, end_ns INTEGER NOT NULL, PRIMARY KEY (world_rank, begin_ns)
) WITHOUT ROWID;
