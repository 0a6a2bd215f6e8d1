-- Applies the user's filters to the split calls and extrapolates them to all calls. Only some calls may be sampled; the cells hold the
-- time of all. factor: how many nanoseconds one sampled nanosecond of this rank, call and communicator represents. Times of NCCL
-- operations are device times.
DELETE FROM late_call
WHERE call NOT IN (SELECT call FROM selected_call)
   OR identity NOT IN (SELECT identity FROM selected_communicator)
   OR region NOT IN (SELECT region_name FROM selected_region)
   OR NOT coalesce(bytes, -1) BETWEEN (SELECT coalesce(low_bytes, -1) FROM selected_size)
                                  AND (SELECT coalesce(high_bytes, 1 << 62) FROM selected_size);

DROP TABLE IF EXISTS temp.late_exact;
CREATE TEMP TABLE late_exact AS
SELECT cell.world_rank, identity, cell.call, sum(cell.count) AS count, sum(total_ns) AS total_ns
FROM cell
JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region)
JOIN size_bin ON size_bin.bytes = cell.bytes AND size_bin.is_folded = cell.is_folded
JOIN run_communicator USING (identity)
JOIN synchronizing ON synchronizing.call = cell.call
WHERE is_blocking AND measure = CASE library WHEN 'nccl' THEN 'device' ELSE 'call' END AND NOT is_inter AND run_communicator.size > 1
  AND cell.call IN (SELECT call FROM selected_call) AND identity IN (SELECT identity FROM selected_communicator)
  AND region_name IN (SELECT region_name FROM selected_region)
GROUP BY cell.world_rank, identity, cell.call;

-- The cells do not distinguish an ncclGroup that holds only sends and receives, where nobody waits for all, from one with a collective.
-- If a rank calls NCCL's point-to-point operations on a communicator, its groups there are not extrapolated: only the split ones count.
DROP TABLE IF EXISTS temp.late_mixed;
CREATE TEMP TABLE late_mixed AS
SELECT DISTINCT cell.world_rank, identity
FROM cell
JOIN call ON call.name = cell.call
JOIN communicator_of USING (world_rank, communicator)
WHERE call.library = 'nccl' AND call.family = 'point-to-point' AND measure = 'call';
DELETE FROM late_exact WHERE call = 'ncclGroup' AND (world_rank, identity) IN (SELECT world_rank, identity FROM late_mixed);
INSERT INTO late_exact
SELECT world_rank, identity, call, count(*), sum(wait_ns + transfer_ns)
FROM late_call
WHERE call = 'ncclGroup' AND (world_rank, identity) IN (SELECT world_rank, identity FROM late_mixed)
GROUP BY world_rank, identity, call;

-- Calls that complete requests have no communicator, and messages may be split in part: the factor of each call that waits for requests or a
-- message is that of all its samples, whatever they completed.
DROP TABLE IF EXISTS temp.late_factor;
CREATE TEMP TABLE late_factor AS
WITH looked AS (
    SELECT world_rank, identity, call, count(*) AS sampled, total(wait_ns + transfer_ns) AS sampled_ns
    FROM late_call
    WHERE completion IS NULL AND sequence > 0
    GROUP BY world_rank, identity, call
),
waiting_call AS (
    SELECT DISTINCT coalesce(completion, call) AS call FROM late_call WHERE completion IS NOT NULL OR sequence < 0
),
completed AS (
    SELECT world_rank, sample.call, count(*) AS sampled, total(end_ns - start_ns) AS sampled_ns
    FROM sample
    WHERE call IN (SELECT call FROM waiting_call)
    GROUP BY world_rank, sample.call
),
completing AS (
    SELECT world_rank, cell.call, sum(count) AS count, sum(total_ns) AS total_ns
    FROM cell
    WHERE measure = 'call' AND call IN (SELECT call FROM waiting_call)
    GROUP BY world_rank, cell.call
)
SELECT world_rank, identity, call, sampled, sampled_ns,
       CASE WHEN sampled >= count OR sampled_ns = 0 THEN 1.0 ELSE max(1.0, total_ns / sampled_ns) END AS factor
FROM looked
JOIN late_exact USING (world_rank, identity, call)
UNION ALL
SELECT world_rank, '', call, sampled, sampled_ns,
       CASE WHEN sampled >= count OR sampled_ns = 0 THEN 1.0 ELSE max(1.0, total_ns / sampled_ns) END
FROM completed
JOIN completing USING (world_rank, call);

-- The split calls with the user's filters, and each one's factor. wait: the number under which late_cause has their causes.
DROP TABLE IF EXISTS temp.late_scaled;
CREATE TEMP TABLE late_scaled AS
SELECT late_call.rowid AS wait, late_call.*, factor
FROM late_call
JOIN late_factor
  ON late_factor.world_rank = late_call.world_rank
 AND late_factor.call = coalesce(late_call.completion, late_call.call)
 AND late_factor.identity = CASE WHEN completion IS NULL AND sequence > 0 THEN late_call.identity ELSE '' END;

-- Exact time that each rank spent inside MPI, as far as the user chose, and in NCCL's operations on the device.
DROP TABLE IF EXISTS temp.late_whole;
CREATE TEMP TABLE late_whole AS
SELECT cell.world_rank, coalesce(call.library, 'mpi') AS library, cell.call, coalesce(is_main, 1) AS is_main, sum(total_ns) AS total_ns
FROM cell
JOIN communicator_of USING (world_rank, communicator)
JOIN region_of USING (world_rank, region)
JOIN size_bin ON size_bin.bytes = cell.bytes AND size_bin.is_folded = cell.is_folded
LEFT JOIN thread USING (world_rank, thread)
LEFT JOIN call ON call.name = cell.call
WHERE measure IN (CASE coalesce(call.library, 'mpi') WHEN 'nccl' THEN 'device' ELSE 'call' END, 'poll') AND coalesce(family, '') <> 'setup'
  AND cell.call IN (SELECT call FROM selected_call) AND identity IN (SELECT identity FROM selected_communicator)
  AND region_name IN (SELECT region_name FROM selected_region)
GROUP BY 1, 2, 3, 4;
