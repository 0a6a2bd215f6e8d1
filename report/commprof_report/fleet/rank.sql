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
said AS (
    SELECT max(CASE key WHEN 'host' THEN value END) AS host,
           max(CASE key WHEN 'program' THEN value END) AS program,
           max(CASE key WHEN 'mpi_version' THEN value END) AS mpi_version,
           max(CASE key WHEN 'user_id' THEN value END) AS user_id,
           max(CASE key WHEN 'process_state' THEN value END) AS process_state,
           max(CASE key WHEN 'last_sign_unix_ns' THEN CAST(value AS INTEGER) END)
               AS last_sign_unix_ns
    FROM fact
)
SELECT run_id, world_rank, world_size, start_unix_ns,
       max(0, coalesce(wall_ns, last_sign_unix_ns - start_unix_ns, counted_ns)) AS wall_ns,
       CASE WHEN ended <> 'running' OR process_state = 'running' THEN ended
            ELSE 'killed' END AS ended,
       min(counted_ns, coalesce((SELECT max(in_mpi_ns) FROM inside), 0)) AS in_mpi_ns,
       coalesce(sync_ns, 0) AS sync_ns,
       coalesce(host, '') AS host, coalesce(program, '') AS program,
       coalesce(mpi_version, '') AS mpi_version, user_id
FROM rank, waiting, said;
