-- Which samples does the run retain? One row per class whose level has been raised (thinning.py): a communicator's identity, '' for the
-- calls without a sequence number, 'gpu' for GPU activities. Block or window `number` is retained if it is a multiple of 2^level.
CREATE TEMP TABLE sample_class (class TEXT PRIMARY KEY, level INTEGER NOT NULL) WITHOUT ROWID;
