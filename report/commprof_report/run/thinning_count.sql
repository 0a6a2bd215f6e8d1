-- How many samples of the attached file `source` are in each block of a communicator's collectives, and between which rows are they? class
-- or number is null for impossible rows.
SELECT 'sample' AS sampled, identity AS class, block AS number, count, first_row, last_row
FROM (
    SELECT world_rank, communicator, ((sequence - 1) >> 10) + 1 AS block, count(*) AS count, min(rowid) AS first_row, max(rowid) AS last_row
    FROM source.sample
    WHERE sequence IS NOT NULL
    GROUP BY communicator, block, world_rank -- that differs most first: it is sorted by them
)
LEFT JOIN source.communicator USING (world_rank, communicator);
