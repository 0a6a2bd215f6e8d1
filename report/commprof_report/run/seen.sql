-- For which reasons is something of the run not in this profile? world_rank: null for the run.
-- source: a fact of these :facts, or the reason itself; unseen.py has the reasons, and those that
-- columns of `rank` count. whole: the time of which the amount is a part.
WITH timed AS (
    SELECT world_rank, rank_wall.wall_ns, rank_wall.counted_ns,
           max(0, coalesce(reset_unix_ns - start_unix_ns, 0)) AS reset_ns
    FROM rank
    JOIN rank_wall USING (world_rank)
),
-- Processes on the other side of inter-communicators; the parent of a spawned job has no constructor.
remote AS (
    SELECT constructor IN ('MPI_Comm_spawn', 'MPI_Comm_spawn_multiple') AS is_spawned,
           sum(remote_size) AS processes
    FROM (SELECT DISTINCT identity, constructor, remote_size FROM communicator WHERE is_inter)
    WHERE constructor IN (
        'MPI_Comm_spawn', 'MPI_Comm_spawn_multiple', 'MPI_Comm_connect', 'MPI_Comm_accept',
        'MPI_Comm_join', ''
    )
    GROUP BY 1
)
SELECT world_rank, key AS source, CAST(value AS INTEGER) AS amount, NULL AS whole, value AS detail
FROM fact
WHERE instr(:facts, ' ' || key || ' ') AND NOT instr(key, ' ')
  AND (value <> '' OR key LIKE 'unseen.%')
UNION ALL
SELECT NULL, CASE WHEN setting IS NULL THEN 'unread' ELSE 'unprofiled' END, absent, NULL,
       coalesce('COMMPROF_RANKS=' || setting, '')
FROM (SELECT max(world_size) - count(*) AS absent FROM rank),
     (SELECT min(value) AS setting FROM fact WHERE key = 'settings.COMMPROF_RANKS' AND value <> '')
UNION ALL
SELECT NULL, CASE WHEN is_spawned THEN 'spawned' ELSE 'connected' END,
       processes - is_spawned * coalesce(
           (SELECT max(CAST(value AS INTEGER)) FROM fact WHERE key = 'spawned.profiled'), 0
       ), NULL, ''
FROM remote
UNION ALL
SELECT timed.world_rank, 'off', wall_ns - counted_ns - reset_ns, wall_ns, coalesce(value, '')
FROM timed LEFT JOIN fact ON fact.world_rank = timed.world_rank AND key = 'unseen.off'
WHERE value IS NOT NULL OR wall_ns - counted_ns - reset_ns > :off_share * wall_ns
UNION ALL
SELECT world_rank, 'reset', reset_ns, wall_ns, '' FROM timed
UNION ALL
SELECT world_rank, 'record', min(record_begin_ns + record_asked_ns, timed.wall_ns) - record_end_ns,
       record_asked_ns, ''
FROM rank JOIN timed USING (world_rank) WHERE record_is_full
UNION ALL
SELECT world_rank, CASE key WHEN 'mpi_abi' THEN 'sizes' ELSE 'copied' END, NULL, NULL, '' FROM fact
WHERE key = 'ledger_copied_unix_ns' OR (key = 'mpi_abi' AND value = 'unknown')
UNION ALL
SELECT world_rank, 'captured', sum(count), NULL, ''
FROM cell
WHERE measure = 'captured'
GROUP BY world_rank
UNION ALL
SELECT rank.world_rank, CASE gpu_state WHEN 'refused' THEN 'gpu' ELSE 'gpu-cut-off' END, NULL,
       NULL, coalesce(value, '')
FROM rank LEFT JOIN fact ON fact.world_rank = rank.world_rank AND key = 'gpu.reason'
WHERE gpu_state = 'refused' OR (gpu_state = 'stopped' AND value <> '');
