-- What merge adds to a merged run for people's own queries: names and one time axis. Commands never read it.

-- The run's communicators, as the reports name them.
CREATE TABLE communicator_label (
    identity TEXT PRIMARY KEY,
    label    TEXT NOT NULL,
    size     INTEGER NOT NULL,
    members  TEXT NOT NULL
) WITHOUT ROWID;

-- From a rank's own times to the run's axis: from since_ns to before until_ns, t is at aligned_ns + (t - since_ns) * (1 + drift).
CREATE TABLE clock_line (
    world_rank INTEGER NOT NULL,
    since_ns   INTEGER NOT NULL,
    until_ns   INTEGER NOT NULL,
    aligned_ns INTEGER NOT NULL,
    drift      REAL    NOT NULL,
    PRIMARY KEY (world_rank, since_ns)
) WITHOUT ROWID;

-- The cells with names. measure is what their times are of: 'call' (unsuccessful polls included), 'completion', 'device', 'captured'.
CREATE VIEW named_cell AS
SELECT cell.cell, rank.run_id, cell.world_rank, host.value AS host, cell.thread, cell.call, coalesce(family, 'unknown') AS family,
       coalesce(call.library, 'mpi') AS library,
       CASE cell.communicator WHEN 0 THEN 'none' WHEN 1 THEN 'other' ELSE coalesce(communicator.identity, 'unknown') END AS identity,
       CASE cell.communicator WHEN 0 THEN '-' WHEN 1 THEN '(other communicators)' ELSE coalesce(label, '(unknown communicator)') END
           AS communicator,
       cell.bytes, cell.is_folded, CASE measure WHEN 'poll' THEN 'call' ELSE measure END AS measure, memory_kind,
       CASE cell.region WHEN 0 THEN '' ELSE coalesce(region.name, '(unknown region)') END AS region,
       cell.count, CASE measure WHEN 'captured' THEN 0 ELSE volume_bytes END AS volume_bytes, total_ns, min_ns, max_ns, blocked_ns
FROM cell
JOIN rank ON rank.world_rank = cell.world_rank
LEFT JOIN call ON call.name = cell.call
LEFT JOIN communicator ON communicator.world_rank = cell.world_rank AND communicator.communicator = cell.communicator
LEFT JOIN communicator_label ON communicator_label.identity = communicator.identity
LEFT JOIN region ON region.world_rank = cell.world_rank AND region.region = cell.region
LEFT JOIN fact AS host ON host.world_rank = cell.world_rank AND host.key = 'host';

-- How long did messages of each size take, over all ranks? Percentiles are null if fewer calls: p95
-- needs 20, p99 needs 100.
CREATE TABLE sizes (
    call TEXT, family TEXT, library TEXT, communicator TEXT, identity TEXT, measure TEXT,
    memory_kind TEXT, bytes INTEGER, is_folded INTEGER,
    ranks INTEGER, count INTEGER, volume_bytes INTEGER, total_ns INTEGER, mean_ns REAL,
    min_ns INTEGER, max_ns INTEGER, blocked_ns INTEGER
);
CREATE TABLE percentiles (
    call TEXT, communicator TEXT, identity TEXT, measure TEXT, memory_kind TEXT, bytes INTEGER,
    is_folded INTEGER,
    count INTEGER, p50_ns REAL, p95_ns REAL, p99_ns REAL
);

-- What does this profile not show? One row a rank and reason; world_rank is null for the run.
CREATE TABLE seen (
    world_rank INTEGER, reason TEXT, effect TEXT, amount INTEGER, unit TEXT, whole INTEGER,
    what TEXT, detail TEXT, way_out TEXT
);

-- The sampled calls with names. begin_ns, end_ns and completed_ns are on the run's axis.
CREATE VIEW calls AS
SELECT sample.world_rank, host.value AS host, sample.thread, sample.call, family, coalesce(call.library, 'mpi') AS library,
       CASE sample.communicator WHEN 0 THEN 'none' WHEN 1 THEN 'other' ELSE coalesce(communicator.identity, 'unknown') END AS identity,
       CASE sample.communicator WHEN 0 THEN '-' WHEN 1 THEN '(other communicators)' ELSE coalesce(label, '(unknown communicator)') END
           AS communicator,
       sequence, bytes, peer, root, region.name AS region,
       aligned_ns + start_ns - since_ns + CAST(round((start_ns - since_ns) * drift) AS INTEGER) AS begin_ns,
       aligned_ns + end_ns - since_ns + CAST(round((start_ns - since_ns) * drift) AS INTEGER) AS end_ns,
       aligned_ns + completed_ns - since_ns + CAST(round((start_ns - since_ns) * drift) AS INTEGER) AS completed_ns,
       end_ns - start_ns AS duration_ns
FROM sample
JOIN clock_line ON clock_line.world_rank = sample.world_rank AND start_ns >= since_ns AND start_ns < until_ns
LEFT JOIN call ON call.name = sample.call
LEFT JOIN communicator ON communicator.world_rank = sample.world_rank AND communicator.communicator = sample.communicator
LEFT JOIN communicator_label ON communicator_label.identity = communicator.identity
LEFT JOIN region ON region.world_rank = sample.world_rank AND region.region = sample.region
LEFT JOIN fact AS host ON host.world_rank = sample.world_rank AND host.key = 'host';

-- The sampled collectives, of persistent ones each start: when the first and the last rank came, who was last, how long the others waited
-- for it, and when the last one was done. waited_ns is what hvprof-report late says, but for progress, where clocks compare: a rank waits
-- from its own call on, for a nonblocking or persistent collective from the call that completes it, until the last rank has begun it. Null:
-- not all wait for all in it, a rank is missing, nobody is known to wait for it alone or longest, or it is NCCL's.
CREATE VIEW collectives AS
WITH begun AS (
    SELECT world_rank, call, communicator, sequence, bytes, start_ns, end_ns, completed_ns
    FROM sample
    WHERE sequence IS NOT NULL AND call NOT IN (SELECT name FROM call WHERE form = 'persistent')
    UNION ALL
    SELECT world_rank, call, communicator, (operation << 40) + number, bytes, start_ns, end_ns, completed_ns
    FROM sample_start
),
completing AS (
    SELECT world_rank, start_ns, end_ns,
           aligned_ns + start_ns - since_ns + CAST(round((start_ns - since_ns) * drift) AS INTEGER) AS wait_begin_ns
    FROM sample
    JOIN clock_line USING (world_rank)
    WHERE start_ns >= since_ns AND start_ns < until_ns AND call IN (SELECT name FROM call WHERE family = 'completion')
),
come AS (
    SELECT world_rank, begun.call, coalesce(library, 'mpi') AS library, sequence, bytes, form, waits_for, start_ns, end_ns, completed_ns,
           CASE begun.communicator WHEN 0 THEN 'none' WHEN 1 THEN 'other' ELSE coalesce(identity, 'unknown') END AS identity,
           coalesce(is_inter, 0) AS is_inter,
           aligned_ns + start_ns - since_ns + CAST(round((start_ns - since_ns) * drift) AS INTEGER) AS begin_ns,
           aligned_ns + coalesce(completed_ns, end_ns) - since_ns + CAST(round((start_ns - since_ns) * drift) AS INTEGER) AS done_ns
    FROM begun
    JOIN clock_line USING (world_rank)
    LEFT JOIN call ON call.name = begun.call
    LEFT JOIN (SELECT world_rank, communicator, identity, is_inter FROM communicator) USING (world_rank, communicator)
    WHERE start_ns >= since_ns AND start_ns < until_ns
),
ranked AS (
    SELECT come.*, max(begin_ns) OVER whole AS last_begin_ns, row_number() OVER (whole ORDER BY begin_ns DESC, world_rank) AS place
    FROM come
    WINDOW whole AS (PARTITION BY identity, sequence, call)
),
-- A call that completes several waits for the one that is ready last.
waiting AS (
    SELECT ranked.*, coalesce(wait_begin_ns, begin_ns) AS wait_begin_ns,
           CASE WHEN form = 'blocking' THEN ranked.end_ns - ranked.start_ns ELSE completing.end_ns - completing.start_ns END AS most_ns,
           form = 'blocking' OR completing.end_ns IS NOT NULL
               AND row_number() OVER (PARTITION BY ranked.world_rank, completed_ns ORDER BY last_begin_ns DESC) = 1 AS decides
    FROM ranked
    LEFT JOIN completing ON completing.world_rank = ranked.world_rank AND completing.end_ns = completed_ns
)
SELECT identity,
       CASE identity WHEN 'none' THEN '-' WHEN 'other' THEN '(other communicators)' ELSE coalesce(label, '(unknown communicator)') END
           AS communicator,
       sequence, call, library, max(bytes) AS bytes, count(*) AS ranks, min(begin_ns) AS first_begin_ns, max(begin_ns) AS last_begin_ns,
       max(begin_ns) - min(begin_ns) AS spread_ns, max(CASE place WHEN 1 THEN world_rank END) AS last_rank,
       CASE WHEN library = 'mpi' AND waits_for LIKE 'all%' AND NOT max(is_inter) AND count(*) > 1
                 AND count(*) = max(members_read) AND max(decides AND (place = 1 OR wait_begin_ns < last_begin_ns))
            THEN sum(CASE WHEN decides THEN max(0, min(last_begin_ns - wait_begin_ns, most_ns)) ELSE 0 END) END AS waited_ns,
       max(done_ns) AS end_ns
FROM waiting
LEFT JOIN (SELECT identity, count(*) AS members_read FROM communicator GROUP BY identity) USING (identity)
LEFT JOIN communicator_label USING (identity)
GROUP BY identity, sequence, call;
