-- Bulk and control of the threads that negotiate, and their rounds: means over the ranks with one.
WITH spent AS (
    SELECT cell.world_rank, cell.call, traffic, cell.count, volume_bytes, total_ns
    FROM cell JOIN call ON call.name = cell.call JOIN cell_traffic ON cell_traffic.cell = cell.cell
    JOIN negotiating USING (world_rank, thread)
    WHERE measure = 'call' AND call.library = 'mpi' AND traffic <> 'setup'
), own AS (
    SELECT count(DISTINCT world_rank) AS ranks,
           total(CASE traffic WHEN 'bulk' THEN volume_bytes END) AS bulk_bytes,
           total(CASE traffic WHEN 'bulk' THEN total_ns END) AS bulk_ns,
           total(CASE traffic WHEN 'control' THEN total_ns END) AS control_ns
    FROM spent
), counted AS (
    SELECT sum(rounds) AS rounds, sum(rounds_idle) AS idle, sum(idle_ns) AS idle_ns,
           sum(steps) AS steps
    FROM negotiation JOIN negotiating USING (world_rank, thread)
)
SELECT (SELECT call FROM spent WHERE traffic = 'control'
        GROUP BY call ORDER BY sum(count) DESC, call LIMIT 1) AS call,
       CAST(round(rounds * 1.0 / ranks) AS INTEGER) AS rounds,
       idle_ns * 1.0 / nullif(idle, 0) AS cycle_ns, idle * 1.0 / rounds AS idle_share,
       rounds * 1.0 / nullif(steps, 0) AS rounds_per_step,
       (SELECT count(*) FROM sample WHERE agreed > 0) * 1.0 / ranks AS sending,
       CAST(round(bulk_bytes / ranks) AS INTEGER) AS bulk_bytes,
       bulk_ns / ranks AS bulk_ns, control_ns / ranks AS control_ns
FROM own JOIN counted WHERE ranks > 0;
