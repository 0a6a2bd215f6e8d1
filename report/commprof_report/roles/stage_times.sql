-- For each rank: the time inside MPI on all threads, without set-up; the time outside MPI, set-up included in MPI, on the thread that spends most
-- time inside. NCCL's messages wait on the device.
WITH inside AS (
    SELECT world_rank, thread, total(total_ns) AS all_ns, total(CASE WHEN family <> 'setup' THEN total_ns END) AS inside_ns
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE library = 'mpi' AND measure IN ('call', 'poll')
    GROUP BY world_rank, thread
)
SELECT world_rank AS rank, counted_ns, CAST(coalesce(total(inside_ns), 0) AS INTEGER) AS inside_ns,
       CAST(max(counted_ns - coalesce(max(all_ns), 0), 0) AS INTEGER) AS outside_ns,
       world_rank IN (SELECT world_rank FROM peer WHERE communicator > 0) AS has_nccl
FROM rank_wall
LEFT JOIN inside USING (world_rank)
GROUP BY world_rank
ORDER BY world_rank;
