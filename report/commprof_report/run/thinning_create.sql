-- Which samples does the run retain? One row per class whose level has been raised (thinning.py): a communicator's identity, '' for the
-- calls without a sequence number, 'gpu' for GPU activities. Block or window `number` is retained if it is a multiple of 2^level; of a block,
-- the first `most` collectives.
CREATE TEMP TABLE sample_class (class TEXT PRIMARY KEY, level INTEGER NOT NULL, most INTEGER NOT NULL) WITHOUT ROWID;

-- Between which rows of the attached file `source` are those that are retained? Spans of rows of a table of samples, in their order.
CREATE TEMP TABLE retained_rows (sampled TEXT NOT NULL, first_row INTEGER NOT NULL, last_row INTEGER NOT NULL);

-- The retained samples of the attached file; their values are still to be checked.
CREATE TEMP TABLE retained_sample AS SELECT * FROM main.sample WHERE 0;
CREATE TEMP TABLE retained_sample_message AS SELECT * FROM main.sample_message WHERE 0;
CREATE TEMP TABLE retained_sample_start AS SELECT * FROM main.sample_start WHERE 0;
CREATE TEMP TABLE retained_region_span AS SELECT * FROM main.region_span WHERE 0;
CREATE TEMP TABLE retained_gpu_sample AS SELECT * FROM main.gpu_sample WHERE 0;
