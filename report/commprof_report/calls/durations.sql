-- How are the durations of one row of sizes.sql, of one communicator or of all of a family, distributed on each rank? One row per rank and
-- histogram bucket in use. Leaves the cells of each rank for rank_percentiles.sql.
DELETE FROM grouped_cell;
INSERT INTO grouped_cell
SELECT world_rank, cell
FROM chosen_cell
WHERE call = :call AND (identity IS :identity OR identity IN (SELECT value FROM json_each(:family))) AND memory_kind = :memory_kind
  AND timed = :measure AND bytes_low = :bytes_low AND bytes_high IS :bytes_high;

SELECT row AS rank, low_ns, coalesce(high_ns, max(max_ns)) AS high_ns, sum(bucket.count) AS count
FROM grouped_cell
JOIN cell USING (cell)
JOIN bucket USING (cell)
JOIN bucket_bound USING (bucket)
GROUP BY row, bucket
ORDER BY row, bucket;
