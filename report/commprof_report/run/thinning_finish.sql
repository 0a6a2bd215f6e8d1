-- Deletes the samples that the final levels do not retain.
DELETE FROM main.sample WHERE sequence IS NOT NULL AND EXISTS (
    SELECT 1
    FROM communicator
    JOIN temp.sample_class ON class = identity
    WHERE communicator.world_rank = sample.world_rank AND communicator.communicator = sample.communicator
      AND ((((sequence - 1) >> 10) + 1) & ((1 << level) - 1) <> 0 OR (sequence - 1) & 1023 >= most)
);

DELETE FROM main.sample WHERE sequence IS NULL AND (
    (SELECT start_unix_ns FROM main.rank WHERE rank.world_rank = sample.world_rank) + start_ns >> 30
) & ((1 << (SELECT level FROM temp.sample_class WHERE class = '')) - 1) <> 0;

DELETE FROM main.sample_message WHERE (
    (SELECT start_unix_ns FROM main.rank WHERE rank.world_rank = sample_message.world_rank) + start_ns >> 30
) & ((1 << (SELECT level FROM temp.sample_class WHERE class = '')) - 1) <> 0;

DELETE FROM main.sample_start WHERE (
    (SELECT start_unix_ns FROM main.rank WHERE rank.world_rank = sample_start.world_rank) + start_ns >> 30
) & ((1 << (SELECT level FROM temp.sample_class WHERE class = '')) - 1) <> 0;

DELETE FROM main.region_span WHERE (
    (SELECT start_unix_ns FROM main.rank WHERE rank.world_rank = region_span.world_rank) + end_ns >> 30
) & ((1 << (SELECT level FROM temp.sample_class WHERE class = '')) - 1) <> 0;

DELETE FROM main.gpu_sample WHERE (
    (SELECT start_unix_ns FROM main.rank WHERE rank.world_rank = gpu_sample.world_rank) + start_ns >> 30
) & ((1 << (SELECT level FROM temp.sample_class WHERE class = 'gpu')) - 1) <> 0;

UPDATE main.communicator SET sample_level = max(sample_level, (SELECT level FROM temp.sample_class WHERE class = identity))
WHERE identity IN (SELECT class FROM temp.sample_class);
