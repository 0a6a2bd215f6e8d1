-- What one rank of a job leaves behind (rank-<n>.db), and what `hvprof-report export` makes of all
-- of them: the same tables, one world_rank or many. docs/SCHEMA.md says what each column means, and
-- src/output/rows.def from where it comes.
--
-- Types: INTEGER is 0 to 2^62, SIGNED INTEGER -2^62 to 2^62, BOOLEAN 0 or 1. SQLite does not
-- enforce types; the reporter checks them, and the constraints, in each file that it reads. The
-- library writes what it has, without checking: `PRAGMA ignore_check_constraints`.
PRAGMA application_id = 1668116582; -- "cmpf"
PRAGMA user_version = 10;

CREATE TABLE rank ( -- commprof's docs/SCHEMA.md says what each column means
    world_rank           INTEGER PRIMARY KEY CHECK (world_rank BETWEEN 0 AND world_size - 1),
    world_size           INTEGER NOT NULL CHECK (world_size <= 1 << 24),
    run_id               TEXT    NOT NULL,
    pid                  INTEGER NOT NULL,
    thread_level         SIGNED INTEGER NOT NULL,
    start_unix_ns        INTEGER NOT NULL,
    start_monotonic_ns   INTEGER NOT NULL,
    end_unix_ns          INTEGER,
    wall_ns              INTEGER,
    counted_ns           INTEGER NOT NULL,
    reset_unix_ns        INTEGER,
    ended                TEXT    NOT NULL CHECK (ended IN ('finalize', 'exit', 'abort', 'running')),
    abort_code           SIGNED INTEGER NOT NULL,
    dropped_calls        INTEGER NOT NULL,
    dropped_messages     INTEGER NOT NULL,
    dropped_completions  INTEGER NOT NULL,
    interrupted_calls    INTEGER NOT NULL,
    untracked_requests   INTEGER NOT NULL,
    folded_cells         INTEGER NOT NULL,
    folded_communicators INTEGER NOT NULL,
    cost_init_ns         INTEGER NOT NULL,
    cost_finalize_ns     INTEGER NOT NULL,
    cost_per_call_ps     INTEGER NOT NULL,
    clock_error_ppb      SIGNED INTEGER NOT NULL,
    window_mask          INTEGER NOT NULL,
    record_begin_ns      INTEGER,
    record_end_ns        INTEGER,
    record_asked_ns      INTEGER,
    record_is_full       BOOLEAN NOT NULL,
    gpu_state                TEXT    NOT NULL
    CHECK (gpu_state IN ('none', 'dormant', 'tracing', 'paused', 'yielded', 'refused', 'stopped')),
    gpu_records              INTEGER NOT NULL,
    gpu_dropped_records      INTEGER NOT NULL,
    gpu_implausible_records  INTEGER NOT NULL,
    gpu_late_records         INTEGER NOT NULL,
    gpu_unattributed_records INTEGER NOT NULL,
    gpu_lost_intervals       INTEGER NOT NULL,
    gpu_unmatched_operations INTEGER NOT NULL,
    gpu_memory_kind_queries  INTEGER NOT NULL,
    gpu_memory_kind_changes  INTEGER NOT NULL,
    cost_gpu_begin_ns        INTEGER NOT NULL,
    cost_gpu_end_ns          INTEGER NOT NULL
);

CREATE TABLE fact (
    world_rank INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    PRIMARY KEY (world_rank, key)
) WITHOUT ROWID;

CREATE TABLE thread (
    world_rank INTEGER NOT NULL,
    thread     INTEGER NOT NULL,
    tid        INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    is_main    BOOLEAN NOT NULL,
    doing_call         TEXT    NOT NULL,
    doing_communicator INTEGER NOT NULL,
    doing_is_inside    BOOLEAN NOT NULL,
    doing_since_ns     INTEGER NOT NULL,
    doing_bytes        INTEGER,
    doing_peer         SIGNED INTEGER,
    doing_tag          SIGNED INTEGER,
    doing_request_call TEXT    NOT NULL,
    PRIMARY KEY (world_rank, thread)
) WITHOUT ROWID;

CREATE TABLE cpu_time (
    world_rank     INTEGER NOT NULL,
    thread         INTEGER NOT NULL,
    at_ns          INTEGER NOT NULL,
    core_ns        INTEGER NOT NULL,
    waiting_ns     INTEGER,
    outside_ready  INTEGER NOT NULL,
    outside_asleep INTEGER NOT NULL,
    outside_disk   INTEGER NOT NULL,
    inside_ready   INTEGER NOT NULL,
    inside_asleep  INTEGER NOT NULL,
    inside_disk    INTEGER NOT NULL,
    PRIMARY KEY (world_rank, thread, at_ns)
) WITHOUT ROWID;

CREATE TABLE call (
    name    TEXT PRIMARY KEY,
    family  TEXT NOT NULL,
    library TEXT NOT NULL CHECK (library IN ('mpi', 'nccl')),
    form      TEXT NOT NULL,
    bandwidth TEXT NOT NULL,
    waits_for TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE communicator (
    world_rank      INTEGER NOT NULL,
    communicator    INTEGER NOT NULL,
    identity        TEXT    NOT NULL,
    parent_identity TEXT,
    name            TEXT    NOT NULL,
    constructor     TEXT    NOT NULL,
    ordinal         INTEGER NOT NULL,
    size            INTEGER NOT NULL CHECK (size <= 1 << 32),
    remote_size     INTEGER NOT NULL CHECK (remote_size <= 1 << 32),
    comm_rank       SIGNED INTEGER NOT NULL,
    members         TEXT    NOT NULL,
    is_inter        BOOLEAN NOT NULL,
    is_freed        BOOLEAN NOT NULL,
    collectives     INTEGER NOT NULL,
    library         TEXT    NOT NULL CHECK (library IN ('mpi', 'nccl')),
    PRIMARY KEY (world_rank, communicator)
) WITHOUT ROWID;

CREATE TABLE recent_collective (
    world_rank   INTEGER NOT NULL,
    communicator INTEGER NOT NULL,
    sequence     INTEGER NOT NULL CHECK (sequence >= 1),
    call         TEXT    NOT NULL,
    bytes        INTEGER,
    root         SIGNED INTEGER,
    PRIMARY KEY (world_rank, communicator, sequence)
) WITHOUT ROWID;

CREATE TABLE cell (
    cell         INTEGER PRIMARY KEY,
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    measure      TEXT    NOT NULL
                 CHECK (measure IN ('call', 'completion', 'poll', 'device', 'captured')),
    memory_kind  TEXT    NOT NULL,
    region       INTEGER NOT NULL,
    is_folded    BOOLEAN NOT NULL,
    count        INTEGER NOT NULL,
    volume_bytes INTEGER NOT NULL,
    total_ns     INTEGER NOT NULL,
    min_ns       INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL CHECK (max_ns >= min_ns),
    blocked_ns   INTEGER NOT NULL,
    CONSTRAINT known_memory_kind
    CHECK (memory_kind IN ('host', 'device', 'managed', 'pinned', 'host>device', 'host>managed',
                           'host>pinned', 'device>host', 'device>managed', 'device>pinned',
                           'managed>host', 'managed>device', 'managed>pinned', 'pinned>host',
                           'pinned>device', 'pinned>managed')),
    UNIQUE (world_rank, thread, call, communicator, bytes, measure, memory_kind, region, is_folded)
);

CREATE TABLE bucket (
    cell   INTEGER NOT NULL,
    bucket INTEGER NOT NULL CHECK (bucket <= 345),
    count  INTEGER NOT NULL,
    PRIMARY KEY (cell, bucket)
) WITHOUT ROWID;

CREATE TABLE bucket_bound (
    bucket  INTEGER PRIMARY KEY,
    low_ns  INTEGER NOT NULL,
    high_ns INTEGER
);
INSERT INTO bucket_bound VALUES (0, 0, 16);
WITH RECURSIVE octave(o) AS (SELECT 4 UNION ALL SELECT o + 1 FROM octave WHERE o < 46),
               part(s) AS (SELECT 0 UNION ALL SELECT s + 1 FROM part WHERE s < 7)
INSERT INTO bucket_bound
SELECT 1 + (o - 4) * 8 + s, (8 + s) << (o - 3), (9 + s) << (o - 3) FROM octave, part;
INSERT INTO bucket_bound VALUES (345, 1 << 47, NULL);

CREATE TABLE peer (
    world_rank   INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    direction    TEXT    NOT NULL CHECK (direction IN ('sent', 'received')),
    communicator INTEGER NOT NULL,
    peer         SIGNED INTEGER NOT NULL CHECK (peer BETWEEN -1 AND 1 << 24),
    count        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    time_ns      INTEGER NOT NULL,
    PRIMARY KEY (world_rank, call, direction, communicator, peer)
) WITHOUT ROWID;

CREATE TABLE sample (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,
    sequence     INTEGER CHECK (sequence >= 1),
    start_ns     INTEGER NOT NULL,
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns),
    completed_ns INTEGER CHECK (completed_ns >= start_ns),
    bytes        INTEGER,
    peer         SIGNED INTEGER CHECK (peer BETWEEN -2 AND 1 << 24),
    root         SIGNED INTEGER,
    request_call TEXT    NOT NULL,
    region       INTEGER NOT NULL,
    device_start_ns INTEGER,
    device_end_ns   INTEGER CHECK (device_end_ns >= device_start_ns),
    is_shared       BOOLEAN,
    tag             SIGNED INTEGER,
    number          INTEGER CHECK (number BETWEEN 1 AND 65535),
    signature       INTEGER CHECK (signature BETWEEN 1 AND 65535),
    object          INTEGER CHECK (object >= 1),
    object_sequence INTEGER CHECK (object_sequence >= 1),
    polled_since_ns INTEGER CHECK (polled_since_ns <= start_ns),
    polled_ns       INTEGER CHECK (polled_ns BETWEEN 0 AND start_ns - polled_since_ns),
    offered         INTEGER CHECK (offered BETWEEN 0 AND 65535),
    agreed          INTEGER CHECK (agreed BETWEEN 0 AND offered),
    CHECK ((device_start_ns IS NULL) + (device_end_ns IS NULL) + (is_shared IS NULL) IN (0, 3))
);

CREATE TABLE signature (
    world_rank     INTEGER NOT NULL,
    signature      INTEGER NOT NULL CHECK (signature BETWEEN 1 AND 65535),
    datatype       TEXT    NOT NULL,
    type_bytes     INTEGER,
    extent         SIGNED INTEGER,
    blocks         INTEGER,
    count          INTEGER,
    op             TEXT    NOT NULL,
    is_commutative BOOLEAN,
    is_in_place    BOOLEAN NOT NULL,
    counts_hash    TEXT,
    memory_kind    TEXT    NOT NULL,
    buffer_at      INTEGER,
    received_at    INTEGER,
    PRIMARY KEY (world_rank, signature)
) WITHOUT ROWID;

CREATE VIEW signed_sample AS
SELECT sample.*, datatype, type_bytes, extent, blocks, count, op, is_commutative, is_in_place,
       counts_hash, memory_kind
FROM sample
JOIN signature USING (world_rank, signature);

CREATE TABLE sample_message (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,
    direction    TEXT    NOT NULL CHECK (direction IN ('sent', 'received')),
    peer         SIGNED INTEGER CHECK (peer BETWEEN -2 AND 1 << 24),
    tag          SIGNED INTEGER,
    number       INTEGER CHECK (number BETWEEN 1 AND 65535),
    bytes        INTEGER,
    start_ns     INTEGER NOT NULL,
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns),
    completed_ns INTEGER CHECK (completed_ns >= start_ns)
);

CREATE VIEW message AS
SELECT world_rank, thread, sample.call, communicator,
       CASE WHEN sample.call IN ('MPI_Recv', 'MPI_Irecv', 'MPI_Mrecv', 'MPI_Imrecv')
            THEN 'received' ELSE 'sent' END AS direction,
       peer, tag, number, bytes, start_ns, end_ns, completed_ns
FROM sample
JOIN call ON call.name = sample.call
WHERE library = 'mpi' AND family = 'point-to-point' AND bandwidth = 'one-way'
  AND form <> 'persistent' AND peer IS NOT NULL
UNION ALL
SELECT world_rank, thread, call, communicator, direction, peer, tag, number, bytes, start_ns,
       end_ns, completed_ns
FROM sample_message
WHERE peer IS NOT NULL;

CREATE TABLE sample_start (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,
    operation    INTEGER NOT NULL CHECK (operation BETWEEN 1 AND 65535),
    number       INTEGER NOT NULL CHECK (number BETWEEN 1 AND 2147483647),
    root         SIGNED INTEGER,
    bytes        INTEGER,
    start_ns     INTEGER NOT NULL,
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns),
    completed_ns INTEGER CHECK (completed_ns >= start_ns)
);

CREATE TABLE sample_epoch (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,
    object       INTEGER NOT NULL CHECK (object > 0),
    peer         INTEGER,
    number       INTEGER CHECK (number BETWEEN 1 AND 2147483647),
    partners     INTEGER NOT NULL CHECK (partners BETWEEN 1 AND 65535),
    start_ns     INTEGER NOT NULL,
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns)
);

CREATE TABLE negotiation (
    world_rank      INTEGER NOT NULL,
    thread          INTEGER NOT NULL,
    communicator    INTEGER NOT NULL,
    words           INTEGER NOT NULL CHECK (words <= 1024),
    rounds          INTEGER NOT NULL,
    rounds_ahead    INTEGER NOT NULL,
    rounds_idle     INTEGER NOT NULL,
    rounds_by_name  INTEGER NOT NULL,
    disbelieved     INTEGER NOT NULL,
    ahead_ns        INTEGER NOT NULL,
    ahead_moving_ns INTEGER NOT NULL,
    idle_ns         INTEGER NOT NULL,
    offered_most    INTEGER NOT NULL,
    agreed          INTEGER NOT NULL,
    steps           INTEGER NOT NULL,
    others_ns       INTEGER NOT NULL,
    exposed_ns      INTEGER NOT NULL,
    uncertain_ns    INTEGER NOT NULL,
    first_ns        INTEGER NOT NULL,
    last_ns         INTEGER NOT NULL,
    last_offered    INTEGER NOT NULL,
    last_agreed     INTEGER NOT NULL,
    ahead_since_ns  INTEGER,
    PRIMARY KEY (world_rank, thread, communicator)
) WITHOUT ROWID;

CREATE TABLE negotiated_place (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    communicator INTEGER NOT NULL,
    place        INTEGER NOT NULL CHECK (place BETWEEN 3 AND 65535),
    agreed       INTEGER NOT NULL CHECK (agreed >= 1),
    PRIMARY KEY (world_rank, thread, communicator, place)
) WITHOUT ROWID;

CREATE TABLE negotiated_step (
    world_rank      INTEGER NOT NULL,
    thread          INTEGER NOT NULL,
    communicator    INTEGER NOT NULL,
    step            INTEGER NOT NULL CHECK (step >= 1),
    tensors         INTEGER NOT NULL CHECK (tensors >= 1),
    after_ns        INTEGER NOT NULL,
    begin_ns        INTEGER NOT NULL,
    handed_after_ns INTEGER NOT NULL,
    handed_ns       INTEGER NOT NULL CHECK (handed_ns >= handed_after_ns),
    agreed_ns       INTEGER NOT NULL CHECK (agreed_ns >= handed_ns),
    done_ns         INTEGER NOT NULL CHECK (done_ns >= agreed_ns),
    PRIMARY KEY (world_rank, thread, communicator, step)
) WITHOUT ROWID;

CREATE TABLE sample_window (
    world_rank INTEGER NOT NULL,
    thread     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL CHECK (end_ns >= begin_ns)
);

CREATE TABLE step (
    world_rank INTEGER NOT NULL,
    step       INTEGER NOT NULL CHECK (step >= 1),
    thread     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL CHECK (end_ns >= begin_ns),
    PRIMARY KEY (world_rank, step)
) WITHOUT ROWID;

CREATE TABLE region (
    world_rank INTEGER NOT NULL,
    region     INTEGER NOT NULL CHECK (region >= 1),
    name       TEXT    NOT NULL,
    PRIMARY KEY (world_rank, region)
) WITHOUT ROWID;

CREATE TABLE region_span (
    world_rank INTEGER NOT NULL,
    thread     INTEGER NOT NULL,
    region     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL CHECK (end_ns >= begin_ns)
);

CREATE TABLE gpu_device (
    world_rank INTEGER NOT NULL,
    device     INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    uuid       TEXT    NOT NULL,
    first_ns   INTEGER,
    last_ns    INTEGER,
    kernels    INTEGER NOT NULL,
    copies     INTEGER NOT NULL,
    sets       INTEGER NOT NULL,
    sms        INTEGER,
    communication_ns       INTEGER NOT NULL,
    communication_sm_ns    INTEGER NOT NULL,
    communication_most_sms INTEGER NOT NULL,
    memory_bytes           INTEGER,
    PRIMARY KEY (world_rank, device)
) WITHOUT ROWID;

CREATE TABLE gpu_reading (
    world_rank            INTEGER NOT NULL,
    device                INTEGER NOT NULL,
    at_ns                 INTEGER NOT NULL,
    clock_mhz             INTEGER,
    memory_used_bytes     INTEGER,
    nvlink_sent_bytes     INTEGER,
    nvlink_received_bytes INTEGER,
    pcie_sent_bytes       INTEGER,
    pcie_received_bytes   INTEGER,
    is_idle               BOOLEAN,
    is_power_limited      BOOLEAN,
    is_heat_limited       BOOLEAN,
    is_hardware_limited   BOOLEAN,
    PRIMARY KEY (world_rank, device, at_ns)
) WITHOUT ROWID;

CREATE TABLE gpu_busy (
    world_rank       INTEGER NOT NULL,
    device           INTEGER NOT NULL,
    is_computing     BOOLEAN NOT NULL,
    is_communicating BOOLEAN NOT NULL,
    is_copying       BOOLEAN NOT NULL,
    is_in_mpi        BOOLEAN NOT NULL,
    ns               INTEGER NOT NULL,
    PRIMARY KEY (world_rank, device, is_computing, is_communicating, is_copying, is_in_mpi)
) WITHOUT ROWID;

CREATE TABLE gpu_stream (
    world_rank INTEGER NOT NULL,
    stream     INTEGER NOT NULL,
    device     INTEGER NOT NULL,
    context    INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    PRIMARY KEY (world_rank, stream)
) WITHOUT ROWID;

CREATE TABLE gpu_kernel (
    world_rank       INTEGER NOT NULL,
    kernel           INTEGER NOT NULL,
    name             TEXT    NOT NULL,
    is_communication BOOLEAN NOT NULL,
    PRIMARY KEY (world_rank, kernel)
) WITHOUT ROWID;

CREATE TABLE gpu_activity (
    activity     INTEGER PRIMARY KEY,
    world_rank   INTEGER NOT NULL,
    stream       INTEGER NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('kernel', 'copy', 'memset')),
    kernel       INTEGER NOT NULL,
    copy         TEXT    NOT NULL
    CHECK (copy IN ('', 'to device', 'to host', 'on device', 'on host', 'to peer', 'other')),
    is_graph     BOOLEAN NOT NULL,
    is_pageable  BOOLEAN NOT NULL,
    is_managed   BOOLEAN NOT NULL,
    bytes        INTEGER NOT NULL,
    count        INTEGER NOT NULL,
    volume_bytes INTEGER NOT NULL,
    total_ns     INTEGER NOT NULL,
    min_ns       INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL CHECK (max_ns >= min_ns)
);

CREATE TABLE gpu_bucket (
    activity INTEGER NOT NULL,
    bucket   INTEGER NOT NULL CHECK (bucket <= 345),
    count    INTEGER NOT NULL,
    PRIMARY KEY (activity, bucket)
) WITHOUT ROWID;

CREATE TABLE gpu_tracing (
    world_rank     INTEGER NOT NULL,
    begin_ns       INTEGER NOT NULL,
    end_ns         INTEGER NOT NULL CHECK (end_ns >= begin_ns),
    ended          TEXT    NOT NULL
    CHECK (ended IN ('goes on', 'duty', 'yielded', 'off', 'stopped', 'lost')),
    clock_error_ns INTEGER,
    records        INTEGER NOT NULL
);

CREATE TABLE nccl_algorithm (
    world_rank   INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    is_folded    BOOLEAN NOT NULL,
    algorithm    TEXT    NOT NULL,
    protocol     TEXT    NOT NULL,
    channels     INTEGER NOT NULL,
    count        INTEGER NOT NULL,
    PRIMARY KEY (world_rank, call, communicator, bytes, is_folded, algorithm, protocol, channels)
) WITHOUT ROWID;

CREATE TABLE gpu_sample (
    world_rank   INTEGER NOT NULL,
    stream       INTEGER NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('kernel', 'copy', 'memset')),
    kernel       INTEGER NOT NULL,
    copy         TEXT    NOT NULL
    CHECK (copy IN ('', 'to device', 'to host', 'on device', 'on host', 'to peer', 'other')),
    is_graph     BOOLEAN NOT NULL,
    communicator INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    start_ns     INTEGER NOT NULL,
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns)
);

CREATE TABLE gpu_sample_window (
    world_rank INTEGER NOT NULL,
    stream     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL CHECK (end_ns >= begin_ns)
);
