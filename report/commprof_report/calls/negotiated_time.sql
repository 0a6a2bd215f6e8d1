-- What the threads that negotiate spend in MPI, bulk and control: means over the ranks that have one.
WITH own AS (
    SELECT max(count(DISTINCT cell.world_rank), 1) AS ranks,
           total(CASE traffic WHEN 'bulk' THEN volume_bytes END) AS bulk_bytes,
           total(CASE traffic WHEN 'bulk' THEN total_ns END) AS bulk_ns,
           total(CASE traffic WHEN 'control' THEN total_ns END) AS control_ns
    FROM cell
    JOIN call ON call.name = cell.call
    JOIN cell_traffic ON cell_traffic.cell = cell.cell
    JOIN negotiating USING (world_rank, thread)
    WHERE measure = 'call' AND call.library = 'mpi' AND traffic <> 'setup'
)
SELECT CAST(round(bulk_bytes / ranks) AS INTEGER) AS bulk_bytes, bulk_ns / ranks AS bulk_ns, control_ns / ranks AS control_ns
FROM own;
