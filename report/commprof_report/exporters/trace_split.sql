-- How long each split call waited; perfetto.py fills it. start_ns: on the run's axis.
DROP TABLE IF EXISTS temp.trace_split;
CREATE TEMP TABLE trace_split (
    world_rank INTEGER NOT NULL, start_ns INTEGER NOT NULL, wait_ns INTEGER NOT NULL, last_rank INTEGER, is_estimate INTEGER NOT NULL,
    identity TEXT NOT NULL, sequence INTEGER NOT NULL, is_blocking INTEGER NOT NULL
);
