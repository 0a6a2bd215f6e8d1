-- Tables and views that relate the ranks of a run. Created once on a merged database; the other queries use them. docs/ARCHITECTURE.md
-- lists all tables of the run that every room may read.

-- Each rank's wall time, and the time during which its calls were counted. For a rank without an end, up to its last sign of life.
CREATE TEMP TABLE rank_wall AS
SELECT rank.world_rank,
       coalesce(wall_ns, min(max(CAST(last_sign.value AS INTEGER), start_unix_ns) - start_unix_ns, 1 << 62)) AS wall_ns,
       wall_ns IS NULL AS is_estimate,
       counted_ns
FROM rank
LEFT JOIN fact AS last_sign ON last_sign.world_rank = rank.world_rank AND last_sign.key = 'last_sign_unix_ns';
-- Indexes of tables of ranks and threads: without one SQLite may visit all rows for each rank.
CREATE INDEX temp.rank_wall_of ON rank_wall (world_rank);

-- Each rank's state, and the last time at which it is known. Only a process without an end may still be running. A process that called
-- NCCL but not MPI makes no MPI_Finalize: its exit is its end.
CREATE TEMP TABLE rank_state AS
WITH called AS (
    SELECT cell.world_rank, max(library = 'nccl') AS has_nccl, max(library = 'mpi') AS has_mpi
    FROM cell
    JOIN call ON call.name = cell.call
    GROUP BY cell.world_rank
)
SELECT rank.world_rank,
       CASE WHEN ended = 'exit' AND has_nccl AND NOT has_mpi THEN 'end'
            WHEN ended <> 'running' THEN ended
            WHEN wall_ns IS NOT NULL THEN 'snapshot'
            WHEN found.value IN ('running', 'killed') THEN found.value
            ELSE 'running or killed' END AS state,
       coalesce(end_unix_ns, start_unix_ns + wall_ns, CAST(last_sign.value AS INTEGER)) AS last_unix_ns,
       copied.value IS NOT NULL AS is_copy
FROM rank
LEFT JOIN called ON called.world_rank = rank.world_rank
LEFT JOIN fact AS copied ON copied.world_rank = rank.world_rank AND copied.key = 'ledger_copied_unix_ns'
LEFT JOIN fact AS found ON found.world_rank = rank.world_rank AND found.key = 'process_state'
LEFT JOIN fact AS last_sign ON last_sign.world_rank = rank.world_rank AND last_sign.key = 'last_sign_unix_ns';
CREATE INDEX temp.rank_state_of ON rank_state (world_rank);

-- The communicators of the run: one row per identity, described by its lowest rank that has a name for it, else by its lowest rank; with
-- a unique label. In an NCCL communicator each rank knows only its own number, so their members are
-- combined (base/units.py).
CREATE TEMP TABLE run_communicator AS
WITH gathered AS (
    SELECT identity, members_listed(group_concat(world_rank), max(size)) AS members
    FROM (SELECT identity, comm_rank, max(world_rank) AS world_rank, max(size) AS size FROM communicator
          WHERE communicator > 1 AND library = 'nccl' AND members = '' GROUP BY 1, 2 ORDER BY 1, 2)
    GROUP BY identity
),
described AS (
    SELECT communicator.*, row_number() OVER (PARTITION BY identity ORDER BY name = '', world_rank) AS choice,
           min(members) OVER (PARTITION BY identity) <> max(members) OVER (PARTITION BY identity) AS is_many
    FROM communicator
    WHERE communicator > 1
),
listed AS (
    SELECT described.*, coalesce(gathered.members, described.members) AS all_members,
           members_shown(coalesce(gathered.members, described.members)) AS shown
    FROM described
    LEFT JOIN gathered USING (identity)
    WHERE choice = 1
),
one AS (
    SELECT identity, parent_identity, name, constructor, ordinal, size, remote_size, is_inter, library,
           CASE WHEN is_many AND size = 1 THEN 'each rank alone' ELSE all_members END AS members,
           CASE WHEN length(shown) <= 32 THEN '{' || shown || '}' ELSE '{' || size || ' ranks}' END AS braces
    FROM listed
),
plain AS (
    SELECT *,
           CASE WHEN name <> '' THEN name
                WHEN constructor = '' THEN CASE library WHEN 'nccl' THEN 'NCCL ' ELSE '' END || 'communicator ' || braces
                ELSE replace(constructor, 'MPI_', '') || ' ' || braces
                     || CASE WHEN ordinal > 0 THEN ' #' || (ordinal + 1) ELSE '' END
           END AS plain_label
    FROM one
),
with_members AS (
    SELECT *,
           CASE WHEN name <> '' AND count(*) OVER (PARTITION BY plain_label) > 1 THEN plain_label || ' ' || braces
                ELSE plain_label
           END AS members_label
    FROM plain
)
SELECT identity, parent_identity, name, constructor, ordinal, size, remote_size, is_inter, library, members,
       CASE WHEN count(*) OVER (PARTITION BY members_label) > 1 THEN members_label || ' @' || substr(identity, 1, 6)
            ELSE members_label
       END AS label
FROM with_members;

-- Point-to-point peers by world rank. For NCCL a rank knows only the peer's number in the communicator; the peer's own database has its
-- world rank. null: its database was not read, or the communicator has no number of its own.
CREATE TEMP TABLE run_peer AS
WITH rank_in_nccl AS (SELECT identity, comm_rank, min(world_rank) AS world_rank FROM communicator WHERE library = 'nccl' GROUP BY 1, 2)
SELECT peer.world_rank, peer.call, direction, CASE WHEN peer.communicator = 0 THEN peer ELSE rank_in_nccl.world_rank END AS peer,
       count, bytes, time_ns
FROM peer
LEFT JOIN communicator AS own
    ON peer.communicator > 0 AND own.world_rank = peer.world_rank AND own.communicator = peer.communicator
LEFT JOIN rank_in_nccl ON rank_in_nccl.identity = own.identity AND rank_in_nccl.comm_rank = peer;

-- Maps a rank's number for a communicator to its identity and label in the run.
CREATE TEMP TABLE communicator_of AS
SELECT used.world_rank,
       used.communicator,
       CASE used.communicator WHEN 0 THEN 'none' WHEN 1 THEN 'other' ELSE coalesce(own.identity, 'unknown') END
           AS identity,
       CASE used.communicator WHEN 0 THEN '-' WHEN 1 THEN '(other communicators)'
                              ELSE coalesce(spanning.label, '(unknown communicator)') END AS label,
       CASE WHEN used.communicator > 1 AND NOT spanning.is_inter THEN spanning.size END AS size
FROM (
    SELECT world_rank, communicator FROM cell
    UNION SELECT world_rank, doing_communicator FROM thread
) AS used
LEFT JOIN communicator AS own USING (world_rank, communicator)
LEFT JOIN run_communicator AS spanning ON spanning.identity = own.identity;

-- The calls that threads are in or returned from last. Threads inside a call come first, the one that has been inside longest before others.
CREATE TEMP TABLE doing AS
SELECT world_rank, thread, identity, doing_call, nullif(doing_request_call, '') AS doing_request_call, nullif(label, '-') AS doing_communicator,
       doing_bytes, doing_peer, doing_tag, doing_is_inside,
       start_unix_ns + doing_since_ns AS doing_since_unix_ns,
       max(0, coalesce(wall_ns, doing_since_ns) - doing_since_ns) AS doing_ns,
       row_number() OVER (
           PARTITION BY world_rank
           ORDER BY doing_is_inside DESC, CASE WHEN doing_is_inside THEN doing_since_ns ELSE -doing_since_ns END, thread
       ) AS place_of_thread
FROM thread
JOIN (SELECT world_rank, communicator AS doing_communicator, identity, label FROM communicator_of) USING (world_rank, doing_communicator)
JOIN (SELECT world_rank, start_unix_ns FROM rank) USING (world_rank)
JOIN (SELECT world_rank, rank_wall.wall_ns FROM rank_wall) USING (world_rank)
WHERE doing_call <> '';
CREATE INDEX temp.doing_of ON doing (world_rank);

-- Maps a rank's number for a region to its name; '' is outside all regions.
CREATE TEMP TABLE region_of AS
SELECT used.world_rank, used.region,
       CASE used.region WHEN 0 THEN '' ELSE coalesce(own.name, '(unknown region)') END AS region_name
FROM (SELECT world_rank, region FROM cell UNION SELECT world_rank, region FROM region_span) AS used
LEFT JOIN region AS own USING (world_rank, region);

-- The user's selection: everything, until selection.py removes rows.
CREATE TEMP TABLE selected_call AS SELECT DISTINCT call FROM cell UNION SELECT call FROM peer;
CREATE TEMP TABLE selected_rank AS SELECT world_rank FROM rank;

-- What each rank used of its host between its first and its last reading, and where it may run. A view: facts may be made anonymous later.
-- Ranks of one kernel share its cores, whatever their hosts' names.
CREATE TEMP VIEW rank_use AS
WITH used AS (
    SELECT last.world_rank, substr(last.key, 6) AS what,
           max(0, min(CAST(last.value AS INTEGER), 1 << 60)) - max(0, min(CAST(begun.value AS INTEGER), 1 << 60)) AS number
    FROM fact AS last
    JOIN fact AS begun ON begun.world_rank = last.world_rank AND begun.key = 'begin.' || substr(last.key, 6)
    WHERE last.key GLOB 'last.*'
),
summed AS (
    SELECT world_rank, sum(CASE WHEN what IN ('cpu_user_ns', 'cpu_system_ns') THEN number END) AS cpu_ns,
           sum(CASE what WHEN 'since_start_ns' THEN number END) AS elapsed_ns,
           sum(CASE what WHEN 'voluntary_switches' THEN number END) AS voluntary_switches,
           sum(CASE what WHEN 'involuntary_switches' THEN number END) AS involuntary_switches,
           sum(CASE what WHEN 'throttled_ns' THEN number END) AS throttled_ns, sum(CASE what WHEN 'stolen_ns' THEN number END) AS stolen_ns
    FROM used
    GROUP BY world_rank
),
place AS (
    SELECT world_rank, max(CASE key WHEN 'host' THEN value END) AS host, max(CASE key WHEN 'boot_id' THEN value END) AS boot_id,
           coalesce(max(CASE key WHEN 'last.affinity' THEN value END), max(CASE key WHEN 'begin.affinity' THEN value END)) AS affinity,
           max(CASE key WHEN 'cpu_quota_cores' THEN CAST(value AS REAL) END) AS quota_cores,
           max(CASE key WHEN 'cpu_quota_cgroup' THEN value END) AS quota_cgroup
    FROM fact
    GROUP BY world_rank
)
SELECT world_rank, host, coalesce(boot_id, host) AS kernel, affinity, quota_cores, quota_cgroup, cpu_ns, elapsed_ns,
       cpu_ns * 1.0 / nullif(elapsed_ns, 0) AS cpu_share, voluntary_switches, involuntary_switches, throttled_ns, stolen_ns,
       involuntary_switches * 1e9 / nullif(cpu_ns, 0) AS involuntary_switches_per_cpu_s
FROM place
LEFT JOIN summed USING (world_rank);
