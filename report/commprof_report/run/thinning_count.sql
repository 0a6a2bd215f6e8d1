-- How many samples of the attached file `source` are in each block of a communicator's collectives, and in each window of the
-- other calls and of GPU activities?
SELECT identity AS class, number, count(*) AS count
FROM (
    SELECT world_rank, communicator, ((sequence - 1) >> 10) + 1 AS number FROM source.sample WHERE sequence IS NOT NULL
)
JOIN source.communicator USING (world_rank, communicator)
GROUP BY identity, number
UNION ALL
SELECT '', (start_unix_ns + time_ns) >> 30, count(*)
FROM (
    SELECT world_rank, start_ns AS time_ns FROM source.sample WHERE sequence IS NULL
    UNION ALL
    SELECT world_rank, start_ns FROM source.sample_message
    UNION ALL
    SELECT world_rank, start_ns FROM source.sample_start
    UNION ALL
    SELECT world_rank, end_ns FROM source.region_span
)
JOIN source.rank USING (world_rank)
GROUP BY 2
UNION ALL
SELECT 'gpu', (start_unix_ns + start_ns) >> 30, count(*)
FROM source.gpu_sample JOIN source.rank USING (world_rank)
GROUP BY 2;
