-- Adds the samples of the attached file `source` to the run: those that the run's levels retain (thinning.py); for a class without a
-- level, all.
INSERT INTO main.sample SELECT
    world_rank, thread, call, communicator, sequence, start_ns, end_ns, completed_ns, bytes, peer, root, awaited, region,
    device_start_ns, device_end_ns, is_shared
FROM source.sample
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

INSERT INTO main.sample_window SELECT world_rank, thread, begin_ns, end_ns FROM source.sample_window;

INSERT INTO main.step SELECT world_rank, step, thread, begin_ns, end_ns FROM source.step;

INSERT INTO main.region_span SELECT world_rank, thread, region, begin_ns, end_ns FROM source.region_span;

INSERT INTO main.gpu_sample SELECT
    world_rank, stream, kind, kernel, copy, is_graph, communicator, bytes, start_ns, end_ns
FROM source.gpu_sample
WHERE :is_whole OR (
    (SELECT start_unix_ns FROM source.rank WHERE rank.world_rank = gpu_sample.world_rank) + start_ns >> 30
) & ((1 << coalesce((SELECT level FROM temp.sample_class WHERE class = 'gpu'), 0)) - 1) = 0;

INSERT INTO main.gpu_sample_window SELECT world_rank, stream, begin_ns, end_ns FROM source.gpu_sample_window;
