-- How are the durations of one row of sizes.sql, of one communicator or of all of a family, distributed on each of its first :most_ranks ranks,
-- and on the others together (rank -1)? One row per rank and histogram bucket in use. Leaves the cells of each for rank_percentiles.sql.
DELETE FROM grouped_cell;
INSERT INTO grouped_cell
WITH own AS (
    SELECT world_rank, cell, dense_rank() OVER (ORDER BY world_rank) AS place
    FROM chosen_cell
    WHERE call = :call AND (identity IS :identity OR identity IN (SELECT value FROM json_each(:family))) AND memory_kind = :memory_kind
      AND timed = :measure AND bytes_low = :bytes_low AND bytes_high IS :bytes_high
)
SELECT CASE WHEN place <= :most_ranks THEN world_rank ELSE -1 END, cell FROM own;

SELECT row AS rank, low_ns, coalesce(high_ns, max(max_ns)) AS high_ns, sum(bucket.count) AS count
FROM grouped_cell
JOIN cell USING (cell)
JOIN bucket USING (cell)
JOIN bucket_bound USING (bucket)
GROUP BY row, bucket
ORDER BY row, bucket;
