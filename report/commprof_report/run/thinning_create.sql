-- Which samples does the run keep, at most? One row a class whose level has been raised (thinning.py): a communicator's identity,
-- '' for the calls that no communicator numbers, 'gpu' for what GPUs did. Block or window `number` is kept if it is a multiple of 2^level.
CREATE TEMP TABLE sample_class (class TEXT PRIMARY KEY, level INTEGER NOT NULL) WITHOUT ROWID;
