-- The size classes of the hvprof papers (filled from bins.py); null: no upper bound. And the steps
-- whose calls are also counted apart.
CREATE TEMP TABLE IF NOT EXISTS hvprof_class (low_bytes INTEGER PRIMARY KEY, high_bytes INTEGER);
DROP TABLE IF EXISTS temp.hvprof_step;
CREATE TEMP TABLE hvprof_step (
    world_rank INTEGER, begin_ns INTEGER, end_ns INTEGER NOT NULL, PRIMARY KEY (world_rank, begin_ns)
) WITHOUT ROWID;
