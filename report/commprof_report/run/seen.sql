-- What does this profile not show of the run, why, and what would show it? One row a rank and reason;
-- world_rank is null for the run. Only stored tables are read: merged databases have this as view `seen`.
-- effect: 'missing', in no figure; 'foreign', in the figures, but not the job's own; 'elsewhere', not of
-- this job; 'merged', counted, but not apart. fact: the key of the fact that gives the reason; its value
-- is the amount, if there is a unit, else the detail.
WITH reason (reason, effect, unit, fact, what, way_out) AS (
    VALUES
    ('unread', 'missing', 'rank', '', 'not read or not profiled', 'name all folders that hold them; put commprof-run before each program of the job'),
    ('unprofiled', 'missing', 'rank', '', 'not profiled', 'run without COMMPROF_RANKS'),
    ('copied', 'missing', '', '', 'what followed the last copy of a ledger on another node', 'read it there'),
    ('damaged', 'missing', '', 'unseen.damaged', 'parts of a damaged ledger', ''),
    ('spawned', 'missing', 'process', '', 'spawned without a profile beside this one',
     'spawn `commprof-run --output RUN PROGRAM`, or pass LD_PRELOAD and COMMPROF_OUTPUT on, by mpirun -x'
     || ' or mpiexec -genvlist'),
    ('bypass', 'missing', '', 'unseen.bypass', 'calls that reach MPI past the profiler, from',
     'open it without RTLD_DEEPBIND'),
    ('lookups', 'missing', 'look-up', 'unseen.dlsym', 'of MPI functions not answered, as COMMPROF_DLSYM=off',
     'commprof-run --dlsym'),
    ('library', 'missing', '', 'unseen.library', 'calls to a second MPI library', ''),
    ('gloo', 'missing', '', 'unseen.gloo', 'communication over gloo, by', 'the backends MPI or NCCL'),
    ('tool', 'foreign', '', 'unseen.tool', 'calls that a tool before the profiler makes itself count as the job''s',
     'commprof-run puts the profiler first'),
    ('off', 'missing', 'ns', '', 'not recorded', 'leave recording on'),
    ('reset', 'missing', 'ns', '', 'set to zero by MPI_Pcontrol(2)', 'leave that call out'),
    ('excluded', 'missing', '', 'settings.COMMPROF_EXCLUDE', 'calls that COMMPROF_EXCLUDE names', 'leave it unset'),
    ('dropped', 'missing', 'call', '', 'dropped: the ledger was full', 'commprof-run --memory 256M'),
    ('dropped-messages', 'missing', 'message', '', 'missing in the table of peers: the ledger was full',
     'commprof-run --memory 256M'),
    ('dropped-completions', 'missing', 'completion', '', 'dropped: the ledger was full',
     'commprof-run --memory 256M'),
    ('interrupted', 'missing', 'call', '', 'of signal handlers that interrupted the profiler''s own code', ''),
    ('untracked', 'missing', 'request', '', 'not followed to completion: there was no memory', ''),
    ('sizes', 'missing', '', '', 'sizes of messages: the ABI of this MPI library is not known', ''),
    ('captured', 'missing', 'call', '', 'captured into CUDA graphs: how often these ran is not counted', ''),
    ('nccl-operation', 'missing', '', 'nccl.unknown_operation',
     'an NCCL operation that this version does not know', 'a newer commprof'),
    ('nccl-datatype', 'missing', '', 'nccl.unknown_datatype',
     'bytes of an NCCL datatype that this version does not know', 'a newer commprof'),
    ('gpu', 'missing', '', '', 'GPUs not traced', ''),
    ('gpu-dropped', 'missing', 'GPU record', '', 'dropped by the tracing interface or never handed over', ''),
    ('gpu-graphs', 'missing', 'graph launch', 'gpu.unseen_graph_launches', 'of CUDA left no record', ''),
    ('gpu-implausible', 'missing', 'GPU record', '', 'with impossible times', ''),
    ('gpu-late', 'missing', 'GPU record', '', 'too late for the sums of time (counted in the tables)', ''),
    ('gpu-uncollected', 'missing', 'ns', 'gpu.uncollected_ns',
     'of GPU records before the end: not collected yet', ''),
    ('gpu-intervals', 'missing', 'MPI call', '', 'missing in times in MPI', ''),
    ('gpu-unmatched', 'missing', 'NCCL operation', '', 'without a time on the device', ''),
    ('gpu-cut-off', 'missing', '', '', 'GPU records at the end', ''),
    ('gpu-together', 'merged', 'GPU record', '', 'counted together with others: a table was full', ''),
    ('connected', 'elsewhere', 'process', '',
     'of other jobs, connected to this one: in profiles of their own, if they were profiled', ''),
    ('communicators', 'merged', 'communicator', '', 'counted as one', 'commprof-run --memory 256M'),
    ('cells', 'merged', 'cell', '', 'merged into cells of several sizes or communicators',
     'commprof-run --memory 256M'),
    ('regions', 'merged', '', 'region_refused', 'regions counted in the one around them, from this one on', ''),
    ('record', 'merged', 'ns', '', 'of COMMPROF_RECORD not recorded call by call: there was no more room',
     'commprof-run --memory 256M')
),
-- Ranks of the run that are not here.
absent (ranks, setting) AS (
    SELECT max(world_size) - count(*),
           (SELECT min(value) FROM fact WHERE key = 'settings.COMMPROF_RANKS' AND value <> '') FROM rank
),
-- Processes on the other side of inter-communicators; the parent of a spawned job has no constructor.
remote (constructor, processes) AS (
    SELECT constructor, sum(remote_size)
    FROM (SELECT DISTINCT identity, constructor, remote_size FROM communicator WHERE is_inter)
    GROUP BY constructor
),
-- How long recording was off on each rank, and what was set to zero.
timed (world_rank, wall_ns, counted_ns, reset_ns) AS (
    SELECT rank.world_rank, coalesce(wall_ns, CAST(last_sign.value AS INTEGER) - start_unix_ns), counted_ns,
           max(0, coalesce(reset_unix_ns - start_unix_ns, 0))
    FROM rank
    LEFT JOIN fact AS last_sign ON last_sign.world_rank = rank.world_rank AND last_sign.key = 'last_sign_unix_ns'
),
found (world_rank, reason, amount, whole, detail) AS (
    SELECT world_rank, reason, CASE WHEN unit <> '' THEN CAST(value AS INTEGER) END, NULL,
           CASE unit WHEN '' THEN value ELSE '' END
    FROM reason JOIN fact ON key = reason.fact
    WHERE reason.fact <> '' AND (value <> '' OR key LIKE 'unseen.%')
    UNION ALL
    SELECT NULL, CASE WHEN setting IS NULL THEN 'unread' ELSE 'unprofiled' END, ranks, NULL,
           coalesce('COMMPROF_RANKS=' || setting, '')
    FROM absent
    UNION ALL
    SELECT NULL, 'spawned', sum(processes) - coalesce((SELECT max(CAST(value AS INTEGER)) FROM fact
                                                       WHERE key = 'spawned.profiled'), 0), NULL, ''
    FROM remote WHERE constructor IN ('MPI_Comm_spawn', 'MPI_Comm_spawn_multiple')
    UNION ALL
    SELECT NULL, 'connected', sum(processes), NULL, ''
    FROM remote WHERE constructor IN ('MPI_Comm_connect', 'MPI_Comm_accept', 'MPI_Comm_join', '')
    UNION ALL
    SELECT timed.world_rank, 'off', wall_ns - counted_ns - reset_ns, wall_ns, coalesce(value, '')
    FROM timed LEFT JOIN fact ON fact.world_rank = timed.world_rank AND key = 'unseen.off'
    WHERE value IS NOT NULL OR wall_ns - counted_ns - reset_ns > :off_share * wall_ns
    UNION ALL
    SELECT world_rank, 'reset', reset_ns, wall_ns, '' FROM timed
    UNION ALL
    SELECT rank.world_rank, 'record',
           min(record_begin_ns + record_asked_ns, timed.wall_ns) - record_end_ns,
           record_asked_ns, ''
    FROM rank JOIN timed USING (world_rank) WHERE record_is_full
    UNION ALL
    SELECT world_rank, CASE key WHEN 'mpi_abi' THEN 'sizes' ELSE 'copied' END, NULL, NULL, '' FROM fact
    WHERE key = 'ledger_copied_unix_ns' OR (key = 'mpi_abi' AND value = 'unknown')
    UNION ALL
    SELECT world_rank, 'captured', sum(count), NULL, '' FROM cell WHERE measure = 'captured' GROUP BY world_rank
    UNION ALL
    SELECT rank.world_rank, CASE gpu_state WHEN 'refused' THEN 'gpu' ELSE 'gpu-cut-off' END, NULL, NULL,
           coalesce(value, '')
    FROM rank LEFT JOIN fact ON fact.world_rank = rank.world_rank AND key = 'gpu.reason'
    WHERE gpu_state = 'refused' OR (gpu_state = 'stopped' AND value <> '')
    UNION ALL
    SELECT world_rank, reason,
           CASE reason
           WHEN 'dropped' THEN dropped_calls
           WHEN 'dropped-messages' THEN dropped_messages
           WHEN 'dropped-completions' THEN dropped_completions
           WHEN 'interrupted' THEN interrupted_calls
           WHEN 'untracked' THEN untracked_requests
           WHEN 'communicators' THEN folded_communicators
           WHEN 'cells' THEN folded_cells
           WHEN 'gpu-dropped' THEN gpu_dropped_records
           WHEN 'gpu-implausible' THEN gpu_implausible_records
           WHEN 'gpu-late' THEN gpu_late_records
           WHEN 'gpu-intervals' THEN gpu_lost_intervals
           WHEN 'gpu-unmatched' THEN gpu_unmatched_operations
           WHEN 'gpu-together' THEN gpu_unattributed_records
           ELSE 0 END, NULL, ''
    FROM rank JOIN reason
)
SELECT world_rank, found.reason, effect, amount, unit, whole, what, detail, way_out
FROM found JOIN reason ON reason.reason = found.reason
WHERE amount IS NULL AND unit = '' OR amount > 0
ORDER BY effect DESC, found.reason, world_rank;
