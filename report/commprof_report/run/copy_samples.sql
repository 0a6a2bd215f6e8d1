-- Adds the samples of the attached file `source` to the run: those that the run's levels retain (thinning.py); for a class without a
-- level, all.
INSERT INTO main.sample SELECT * FROM source.sample
WHERE :is_whole OR (
    CASE WHEN sequence IS NULL
         THEN (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = sample.world_rank) + start_ns >> 30
         ELSE ((sequence - 1) >> 10) + 1 END
) & ((1 << coalesce(
    CASE WHEN sequence IS NULL
         THEN (SELECT level FROM temp.sample_class WHERE class = '')
         ELSE (SELECT level FROM source.communicator JOIN temp.sample_class ON class = identity
               WHERE communicator.world_rank = sample.world_rank AND communicator.communicator = sample.communicator) END,
    0)) - 1) = 0;

INSERT INTO main.sample_message SELECT * FROM source.sample_message
WHERE :is_whole OR (
    (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = sample_message.world_rank) + start_ns >> 30
) & ((1 << coalesce((SELECT level FROM temp.sample_class WHERE class = ''), 0)) - 1) = 0;

INSERT INTO main.sample_start SELECT * FROM source.sample_start
WHERE :is_whole OR (
    (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = sample_start.world_rank) + start_ns >> 30
) & ((1 << coalesce((SELECT level FROM temp.sample_class WHERE class = ''), 0)) - 1) = 0;

INSERT INTO main.sample_window SELECT * FROM source.sample_window WHERE 1;

INSERT INTO main.step SELECT * FROM source.step WHERE 1;

INSERT INTO main.region_span SELECT * FROM source.region_span WHERE 1;

INSERT INTO main.gpu_sample SELECT * FROM source.gpu_sample
WHERE :is_whole OR (
    (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = gpu_sample.world_rank) + start_ns >> 30
) & ((1 << coalesce((SELECT level FROM temp.sample_class WHERE class = 'gpu'), 0)) - 1) = 0;

INSERT INTO main.gpu_sample_window SELECT * FROM source.gpu_sample_window WHERE 1;
