-- Reads the samples of the attached file `source` that the run's levels retain (thinning.py); of a class without a level, all. Only the rows
-- in retained_rows are read. Rows of a rank or communicator that is not there are retained, so that they are found.
DELETE FROM temp.retained_sample;
DELETE FROM temp.retained_sample_message;
DELETE FROM temp.retained_sample_start;
DELETE FROM temp.retained_region_span;
DELETE FROM temp.retained_gpu_sample;

INSERT INTO temp.retained_sample
SELECT sample.*
FROM temp.retained_rows
CROSS JOIN source.sample ON sample.rowid BETWEEN first_row AND last_row
LEFT JOIN source.communicator
    ON sequence IS NOT NULL AND communicator.world_rank = sample.world_rank AND communicator.communicator = sample.communicator
LEFT JOIN temp.sample_class ON class = CASE WHEN sequence IS NULL THEN '' ELSE identity END
WHERE sampled = 'sample' AND (:is_whole OR coalesce((
    CASE WHEN sequence IS NULL
         THEN (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = sample.world_rank) + start_ns >> 30
         ELSE ((sequence - 1) >> 10) + 1 END
) & ((1 << level) - 1), 0) = 0 AND (sequence IS NULL OR most IS NULL OR (sequence - 1) & 1023 < most));

INSERT INTO temp.retained_sample_message
SELECT sample_message.*
FROM temp.retained_rows
CROSS JOIN source.sample_message ON sample_message.rowid BETWEEN first_row AND last_row
WHERE sampled = 'sample_message' AND (:is_whole OR coalesce((
    (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = sample_message.world_rank) + start_ns >> 30
) & ((1 << coalesce((SELECT level FROM temp.sample_class WHERE class = ''), 0)) - 1), 0) = 0);

INSERT INTO temp.retained_sample_start
SELECT sample_start.*
FROM temp.retained_rows
CROSS JOIN source.sample_start ON sample_start.rowid BETWEEN first_row AND last_row
WHERE sampled = 'sample_start' AND (:is_whole OR coalesce((
    (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = sample_start.world_rank) + start_ns >> 30
) & ((1 << coalesce((SELECT level FROM temp.sample_class WHERE class = ''), 0)) - 1), 0) = 0);

INSERT INTO temp.retained_region_span
SELECT region_span.*
FROM temp.retained_rows
CROSS JOIN source.region_span ON region_span.rowid BETWEEN first_row AND last_row
WHERE sampled = 'region_span' AND (:is_whole OR coalesce((
    (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = region_span.world_rank) + end_ns >> 30
) & ((1 << coalesce((SELECT level FROM temp.sample_class WHERE class = ''), 0)) - 1), 0) = 0);

INSERT INTO temp.retained_gpu_sample
SELECT gpu_sample.*
FROM temp.retained_rows
CROSS JOIN source.gpu_sample ON gpu_sample.rowid BETWEEN first_row AND last_row
WHERE sampled = 'gpu_sample' AND (:is_whole OR coalesce((
    (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = gpu_sample.world_rank) + start_ns >> 30
) & ((1 << coalesce((SELECT level FROM temp.sample_class WHERE class = 'gpu'), 0)) - 1), 0) = 0);
