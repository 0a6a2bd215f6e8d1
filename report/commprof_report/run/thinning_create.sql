-- Which samples does the run retain? One row per class whose level has been raised (thinning.py): a communicator's identity, '' for the
-- calls without a sequence number, 'gpu' for GPU activities. Block or window `number` is retained if it is a multiple of 2^level; of a block,
-- the first `most` collectives.
CREATE TEMP TABLE sample_class (class TEXT PRIMARY KEY, level INTEGER NOT NULL, most INTEGER NOT NULL) WITHOUT ROWID;

-- The same by communicator, of the database whose rows are chosen.
CREATE TEMP TABLE thinned_communicator (
    world_rank INTEGER, communicator INTEGER, level INTEGER NOT NULL, most INTEGER NOT NULL, PRIMARY KEY (world_rank, communicator)
) WITHOUT ROWID;

-- Between which rows of the attached file `source` are those that are retained? Spans of rows of a table of samples, in their order.
CREATE TEMP TABLE retained_rows (sampled TEXT NOT NULL, first_row INTEGER NOT NULL, last_row INTEGER NOT NULL);
