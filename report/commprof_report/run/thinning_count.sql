-- How many samples of the attached file `source` are in each block of a communicator's collectives, and in each window of the other calls
-- and of GPU activities; and between which rows of their table are they? class or number is null for impossible rows.
-- Windows that the levels of the run do not retain any more (2^level - 1: passed_windows, passed_of_gpus) count as window 1, which is none of
-- those retained either.
SELECT 'sample' AS sampled, identity AS class, block AS number, count, first_row, last_row
FROM (
    SELECT world_rank, communicator, ((sequence - 1) >> 10) + 1 AS block, count(*) AS count, min(rowid) AS first_row, max(rowid) AS last_row
    FROM source.sample
    WHERE sequence IS NOT NULL
    GROUP BY communicator, block, world_rank -- that differs most first: it is sorted by them
)
LEFT JOIN source.communicator USING (world_rank, communicator)
UNION ALL
SELECT 'sample', '',
       CASE WHEN (start_unix_ns + start_ns >> 30) & :passed_windows THEN 1 ELSE start_unix_ns + start_ns >> 30 END,
       count(*), min(sample.rowid), max(sample.rowid)
FROM source.sample
LEFT JOIN source.rank USING (world_rank)
WHERE sequence IS NULL
GROUP BY 3
UNION ALL
SELECT 'sample_message', '',
       CASE WHEN (start_unix_ns + start_ns >> 30) & :passed_windows THEN 1 ELSE start_unix_ns + start_ns >> 30 END,
       count(*), min(sample_message.rowid), max(sample_message.rowid)
FROM source.sample_message
LEFT JOIN source.rank USING (world_rank)
GROUP BY 3
UNION ALL
SELECT 'sample_start', '',
       CASE WHEN (start_unix_ns + start_ns >> 30) & :passed_windows THEN 1 ELSE start_unix_ns + start_ns >> 30 END,
       count(*), min(sample_start.rowid), max(sample_start.rowid)
FROM source.sample_start
LEFT JOIN source.rank USING (world_rank)
GROUP BY 3
UNION ALL
SELECT 'region_span', '',
       CASE WHEN (start_unix_ns + end_ns >> 30) & :passed_windows THEN 1 ELSE start_unix_ns + end_ns >> 30 END,
       count(*), min(region_span.rowid), max(region_span.rowid)
FROM source.region_span
LEFT JOIN source.rank USING (world_rank)
GROUP BY 3
UNION ALL
SELECT 'gpu_sample', 'gpu',
       CASE WHEN (start_unix_ns + start_ns >> 30) & :passed_of_gpus THEN 1 ELSE start_unix_ns + start_ns >> 30 END,
       count(*), min(gpu_sample.rowid), max(gpu_sample.rowid)
FROM source.gpu_sample
LEFT JOIN source.rank USING (world_rank)
GROUP BY 3;
