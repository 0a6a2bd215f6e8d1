-- The size classes of hvprof's papers (bins.py fills them in); null: no upper bound.
CREATE TEMP TABLE IF NOT EXISTS hvprof_class (low_bytes INTEGER PRIMARY KEY, high_bytes INTEGER);
