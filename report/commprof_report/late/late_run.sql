-- The whole run: how much of the time inside MPI and in NCCL's operations was split, and how much of that was waiting? whole_ns is exact; the
-- samples' times are rounded apart from it.
WITH split AS (
    SELECT total(wait_ns * factor) AS wait_ns, total(transfer_ns * factor) AS transfer_ns, total(wait_ns + transfer_ns) AS sampled_ns,
           total(CASE WHEN is_estimate THEN (wait_ns + transfer_ns) * factor END) AS estimated_ns,
           total(CASE library WHEN 'mpi' THEN (wait_ns + transfer_ns) * factor END) AS mpi_ns
    FROM late_scaled
    JOIN call ON call.name = call
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
),
sampled AS (
    SELECT count(*) FILTER (WHERE sequence > 0) AS collectives, count(*) FILTER (WHERE sequence < 0) AS message_calls
    FROM (SELECT DISTINCT identity, sequence FROM late_call)
),
whole AS (
    SELECT total(total_ns) AS whole_ns,
           total(CASE WHEN library = 'mpi' AND NOT is_main THEN total_ns END)
               / nullif(total(CASE library WHEN 'mpi' THEN total_ns END), 0) AS background_share
    FROM late_whole
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
),
counted AS (
    SELECT total(counted_ns) AS counted_ns, count(*) AS ranks FROM rank_wall WHERE world_rank IN (SELECT world_rank FROM selected_rank)
)
SELECT counted.ranks,
       collectives,
       message_calls,
       CAST(round(whole_ns) AS INTEGER) AS total_ns,
       CAST(round(sampled_ns) AS INTEGER) AS sampled_ns,
       (wait_ns + transfer_ns) / nullif(max(whole_ns, wait_ns + transfer_ns), 0) AS coverage,
       sampled_ns / nullif(wait_ns + transfer_ns, 0) AS sampled_share,
       CAST(round(wait_ns) AS INTEGER) AS wait_ns,
       CAST(round(transfer_ns) AS INTEGER) AS transfer_ns,
       wait_ns / nullif(wait_ns + transfer_ns, 0) AS wait_share,
       (wait_ns + transfer_ns) / nullif(counted_ns, 0) AS share_of_wall,
       estimated_ns / nullif(wait_ns + transfer_ns, 0) AS estimate_share,
       coalesce(background_share, 0.0) AS background_share,
       CAST(round(counted_ns) AS INTEGER) AS counted_ns
FROM split, sampled, whole, counted;
