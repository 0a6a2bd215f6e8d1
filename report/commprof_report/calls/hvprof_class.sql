-- The size classes of the hvprof papers (filled from bins.py); null: no upper bound.
CREATE TEMP TABLE IF NOT EXISTS hvprof_class (low_bytes INTEGER PRIMARY KEY, high_bytes INTEGER);
