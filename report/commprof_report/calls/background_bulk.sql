-- The bulk collectives of threads other than the main one: bytes and time of a rank, as means over the ranks that make some.
SELECT CAST(round(total(volume_bytes) / max(count(DISTINCT cell.world_rank), 1)) AS INTEGER) AS bulk_bytes,
       total(total_ns) / max(count(DISTINCT cell.world_rank), 1) AS bulk_ns
FROM cell
JOIN thread USING (world_rank, thread)
JOIN cell_traffic ON cell_traffic.cell = cell.cell
JOIN call ON call.name = cell.call
WHERE NOT is_main AND measure = 'call' AND traffic = 'bulk' AND family IN ('collective', 'neighborhood') AND call.library = 'mpi';
