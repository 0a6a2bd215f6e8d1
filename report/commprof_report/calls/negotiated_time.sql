-- What the threads that negotiate spend in MPI: bulk and control, as means over the ranks that have one; and their share of the time in MPI of
-- all threads.
WITH spent AS (
    SELECT cell.world_rank, traffic, volume_bytes, total_ns, negotiating.thread IS NOT NULL AS is_negotiated
    FROM cell
    JOIN call ON call.name = cell.call
    JOIN cell_traffic ON cell_traffic.cell = cell.cell
    LEFT JOIN negotiating ON negotiating.world_rank = cell.world_rank AND negotiating.thread = cell.thread
    WHERE measure = 'call' AND call.library = 'mpi' AND traffic <> 'setup'
),
own AS (
    SELECT max(count(DISTINCT world_rank), 1) AS ranks,
           total(CASE traffic WHEN 'bulk' THEN volume_bytes END) AS bulk_bytes,
           total(CASE traffic WHEN 'bulk' THEN total_ns END) AS bulk_ns,
           total(CASE traffic WHEN 'control' THEN total_ns END) AS control_ns
    FROM spent
    WHERE is_negotiated
)
SELECT CAST(round(bulk_bytes / ranks) AS INTEGER) AS bulk_bytes,
       bulk_ns / ranks AS bulk_ns,
       control_ns / ranks AS control_ns,
       (SELECT total(CASE WHEN is_negotiated THEN total_ns END) / max(total(total_ns), 1) FROM spent) AS share
FROM own;
