-- What does the file of one rank say about it? wall_ns: up to its last sign of life, where it has
-- no end.
WITH inside AS (
    SELECT thread, sum(total_ns) AS in_mpi_ns
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE library = 'mpi' AND family <> 'setup' AND measure IN ('call', 'poll')
    GROUP BY thread
),
waiting AS (
    SELECT sum(total_ns) AS sync_ns
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE library = 'mpi' AND measure = 'call' AND (waits_for LIKE 'all%' OR family = 'completion')
),
own AS (
    SELECT rank.*, host.value AS host,
           (SELECT value FROM fact WHERE fact.world_rank = rank.world_rank
                AND key = 'process_state') AS process_state,
           (SELECT CAST(value AS INTEGER) FROM fact WHERE fact.world_rank = rank.world_rank
                AND key = 'last_sign_unix_ns') AS last_sign_unix_ns
    FROM rank
    LEFT JOIN fact AS host ON host.world_rank = rank.world_rank AND host.key = 'host'
)
SELECT run_id, world_rank, world_size, start_unix_ns,
       max(0, coalesce(wall_ns, last_sign_unix_ns - start_unix_ns, counted_ns)) AS wall_ns,
       CASE WHEN ended <> 'running' OR process_state = 'running' THEN ended
            ELSE 'killed' END AS ended,
       min(counted_ns, coalesce((SELECT max(in_mpi_ns) FROM inside), 0)) AS in_mpi_ns,
       coalesce(sync_ns, 0) AS sync_ns, coalesce(host, '') AS host
FROM own, waiting;
