-- The whole run: how much of the time in synchronizing collectives was analysed, and how much of it was waiting?
WITH split AS (
    SELECT count(DISTINCT world_rank) AS ranks,
           total(wait_ns * factor) AS wait_ns, total(transfer_ns * factor) AS transfer_ns, total(wait_ns + transfer_ns) AS looked_ns,
           total(CASE WHEN is_estimate THEN (wait_ns + transfer_ns) * factor END) AS estimated_ns
    FROM late_call
    JOIN late_factor USING (world_rank, identity, call)
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
),
looked AS (
    SELECT count(*) AS collectives FROM (SELECT DISTINCT identity, sequence FROM late_call)
),
made AS (
    SELECT coalesce(sum(total_ns), 0) AS total_ns
    FROM late_exact
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
),
other AS (
    SELECT total(total_ns) AS other_ns
    FROM chosen_cell
    JOIN call ON call.name = chosen_cell.call
    WHERE measure = 'call' AND chosen_cell.library = 'mpi' AND call.family IN ('collective', 'neighborhood')
      AND call NOT IN (SELECT call FROM synchronizing WHERE NOT is_blocking)
      AND NOT EXISTS (
          SELECT 1 FROM late_exact
          WHERE late_exact.world_rank = chosen_cell.world_rank AND late_exact.identity = chosen_cell.identity
            AND late_exact.call = chosen_cell.call
      )
),
counted AS (
    SELECT total(counted_ns) AS counted_ns, count(*) AS ranks FROM rank_wall WHERE world_rank IN (SELECT world_rank FROM selected_rank)
)
SELECT counted.ranks,
       collectives,
       total_ns,
       CAST(round(looked_ns) AS INTEGER) AS looked_ns,
       min(1.0, looked_ns / nullif(total_ns, 0)) AS coverage,
       CAST(round(wait_ns) AS INTEGER) AS wait_ns,
       CAST(round(transfer_ns) AS INTEGER) AS transfer_ns,
       wait_ns / nullif(wait_ns + transfer_ns, 0) AS wait_share,
       (wait_ns + transfer_ns) / nullif(counted_ns, 0) AS share_of_wall,
       estimated_ns / nullif(wait_ns + transfer_ns, 0) AS estimate_share,
       CAST(round(other_ns) AS INTEGER) AS other_ns
FROM split, looked, made, other, counted;
