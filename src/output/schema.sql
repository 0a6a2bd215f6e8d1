-- What one rank of a job leaves behind (rank-<n>.db), and what `hvprof-report merge` makes of all of them: the same tables,
-- one world_rank or many. Times are nanoseconds, sizes bytes. docs/SCHEMA.md defines every column.
--
-- Types: INTEGER is 0 to 2^62, SIGNED INTEGER -2^62 to 2^62, BOOLEAN 0 or 1. SQLite does not enforce types; the reporter checks them, and
-- the constraints, in each file that it reads. The library writes what it has, without checking: `PRAGMA ignore_check_constraints`.
PRAGMA application_id = 1668116582; -- "cmpf"
PRAGMA user_version = 10;

-- A process of the job.
CREATE TABLE rank (
    world_rank           INTEGER PRIMARY KEY CHECK (world_rank BETWEEN 0 AND world_size - 1),
    world_size           INTEGER NOT NULL CHECK (world_size <= 1 << 24),
    run_id               TEXT    NOT NULL,  -- the same on all ranks of a run
    pid                  INTEGER NOT NULL,
    thread_level         SIGNED INTEGER NOT NULL,  -- 0 single, 1 funneled, 2 serialized, 3 multiple, -1 unknown
    start_unix_ns        INTEGER NOT NULL,  -- entry of MPI_Init
    start_monotonic_ns   INTEGER NOT NULL,  -- the same moment on CLOCK_MONOTONIC, which the ranks of a host share (facts boot_id, time_namespace)
    end_unix_ns          INTEGER,           -- return of MPI_Finalize, exit or MPI_Abort; null: not known
    wall_ns              INTEGER,           -- the same span on the monotonic clock; of a snapshot: up to it
    counted_ns           INTEGER NOT NULL,  -- how long calls were counted: not while MPI_Pcontrol(0) or a time window held, nor before a reset
    reset_unix_ns        INTEGER,           -- when the counters were last set to zero (MPI_Pcontrol(2)); null: never
    ended                TEXT    NOT NULL CHECK (ended IN ('finalize', 'exit', 'abort', 'running')),  -- 'running': or killed
    abort_code           SIGNED INTEGER NOT NULL,
    dropped_calls        INTEGER NOT NULL,
    interrupted_calls    INTEGER NOT NULL,  -- of signal handlers that interrupted the profiler
    untracked_requests   INTEGER NOT NULL,
    folded_cells         INTEGER NOT NULL,
    folded_communicators INTEGER NOT NULL,
    cost_init_ns         INTEGER NOT NULL,
    cost_finalize_ns     INTEGER NOT NULL,
    cost_per_call_ps     INTEGER NOT NULL,  -- picoseconds; an estimate, measured in the job
    clock_error_ppb      SIGNED INTEGER NOT NULL,
    -- The GPU side; the facts gpu.reason, gpu.tracing_library, gpu.driver, nccl.library, nccl.version say more.
    gpu_state                TEXT    NOT NULL CHECK (gpu_state IN ('none', 'dormant', 'tracing', 'paused', 'yielded', 'refused', 'stopped')),
    gpu_records              INTEGER NOT NULL,
    gpu_dropped_records      INTEGER NOT NULL,  -- by the tracing interface's count, and unread at the end
    gpu_implausible_records  INTEGER NOT NULL,
    gpu_late_records         INTEGER NOT NULL,  -- counted, but in no union
    gpu_unattributed_records INTEGER NOT NULL,  -- counted under 'other' kernels or streams
    gpu_lost_intervals       INTEGER NOT NULL,  -- MPI calls missing in the unions
    gpu_unmatched_operations INTEGER NOT NULL,  -- NCCL operations without a device time, though the device was traced
    gpu_memory_kind_queries  INTEGER NOT NULL,
    gpu_memory_kind_changes  INTEGER NOT NULL,
    cost_gpu_begin_ns        INTEGER NOT NULL,
    cost_gpu_end_ns          INTEGER NOT NULL
);

-- Provenance: where, with what, under which settings.
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
    -- What it was doing when this was written: the call that it was in, or has left last.
    doing_call         TEXT    NOT NULL,  -- '': none yet
    doing_communicator INTEGER NOT NULL,  -- 0: the call has none, or it was not known beforehand
    doing_is_inside    BOOLEAN NOT NULL,  -- 1: still inside it
    doing_since_ns     INTEGER NOT NULL,  -- when it went in (came out, where it is not inside); counted from start_unix_ns
    doing_bytes        INTEGER,           -- null: not known beforehand
    doing_peer         SIGNED INTEGER,  -- world rank, -1: a process outside MPI_COMM_WORLD, -2: any source; null: none
    doing_tag          SIGNED INTEGER,  -- null: none, or not known beforehand
    doing_request_call TEXT    NOT NULL,  -- of a call that waits for requests: the call that started the first of them; then communicator,
                                          -- bytes and peer are the request's
    PRIMARY KEY (world_rank, thread)
) WITHOUT ROWID;

-- Functions that other rows name.
CREATE TABLE call (
    name    TEXT PRIMARY KEY,  -- 'MPI_Allreduce'; large-count forms are counted under the plain name
    family  TEXT NOT NULL,
    library TEXT NOT NULL CHECK (library IN ('mpi', 'nccl')),
    -- An operation that is nonblocking or persistent moves its data between the call that starts it and the one that completes it.
    form      TEXT NOT NULL,   -- 'blocking', 'nonblocking', 'persistent'
    -- How nccl-tests turns the size S, the time t and n ranks into bus bandwidth: 'one-way' S/t, 'allreduce' S/t * 2(n-1)/n,
    -- 'reduce-scatter' and 'allgather' S/t * (n-1)/n. S is `bytes`; of 'allgather' n times as much. Undefined are 'prefix' (Scan) and
    -- 'own-size' (each rank has a size of its own). 'unrated': the time is not that of the bytes; 'silent': there are none.
    bandwidth TEXT NOT NULL,
    -- The ranks on which the return of the call, or the completion of its request, depends: 'all', 'all-unless-empty' (whose part is not
    -- empty), 'root-first' (Bcast), 'root-last' (Reduce), 'lower' (Scan), 'sender', 'receiver', 'peer' (of a message), 'nobody'.
    waits_for TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE communicator (
    world_rank      INTEGER NOT NULL,
    communicator    INTEGER NOT NULL,  -- this rank's number for it
    identity        TEXT    NOT NULL,  -- 16 hexadecimal digits, equal on all its ranks
    parent_identity TEXT,
    name            TEXT    NOT NULL,  -- MPI_Comm_set_name's; '' if none
    constructor     TEXT    NOT NULL,  -- the call that made it; '' for predefined ones and unseen constructors
    ordinal         INTEGER NOT NULL,  -- how many alike were made before it
    size            INTEGER NOT NULL CHECK (size <= 1 << 32),
    remote_size     INTEGER NOT NULL CHECK (remote_size <= 1 << 32),  -- 0 unless inter-communicator
    comm_rank       SIGNED INTEGER NOT NULL,
    members         TEXT    NOT NULL,  -- world ranks in order, '0-3,8,16-30:2'
    is_inter        BOOLEAN NOT NULL,
    is_freed        BOOLEAN NOT NULL,
    collectives     INTEGER NOT NULL,  -- how many collective calls this rank has begun on it
    library         TEXT    NOT NULL CHECK (library IN ('mpi', 'nccl')),  -- members of NCCL's are '' (a rank knows its own number alone)
    PRIMARY KEY (world_rank, communicator)
) WITHOUT ROWID;

-- The last collectives begun on a communicator: all its ranks begin the same ones in the same order, or hang.
CREATE TABLE recent_collective (
    world_rank   INTEGER NOT NULL,
    communicator INTEGER NOT NULL,
    sequence     INTEGER NOT NULL CHECK (sequence >= 1),  -- 1: the first on this communicator
    call         TEXT    NOT NULL,
    bytes        INTEGER,           -- null: not known beforehand (derived types, v-variants)
    root         SIGNED INTEGER,  -- rank in the communicator; null: none
    PRIMARY KEY (world_rank, communicator, sequence)
) WITHOUT ROWID;

-- What is counted apart.
CREATE TABLE cell (
    cell         INTEGER PRIMARY KEY,
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,  -- 0: the call has none
    bytes        INTEGER NOT NULL,  -- message size in the sense of the OSU micro-benchmarks
    measure      TEXT    NOT NULL  -- 'device' and 'captured' are NCCL's: on the device, into a graph
                 CHECK (measure IN ('call', 'completion', 'poll', 'device', 'captured')),
    memory_kind  TEXT    NOT NULL,  -- of its buffers: 'host', 'device', 'managed', 'pinned'; 'device>host' where both differ
    region       INTEGER NOT NULL,
    is_folded    BOOLEAN NOT NULL,  -- 1: several sizes, above bytes / 2 and up to bytes
    count        INTEGER NOT NULL,
    volume_bytes INTEGER NOT NULL,
    total_ns     INTEGER NOT NULL,
    min_ns       INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL CHECK (max_ns >= min_ns),
    blocked_ns   INTEGER NOT NULL,
    CONSTRAINT known_memory_kind
    CHECK (memory_kind IN ('host', 'device', 'managed', 'pinned', 'host>device', 'host>managed', 'host>pinned', 'device>host',
                           'device>managed', 'device>pinned', 'managed>host', 'managed>device', 'managed>pinned', 'pinned>host',
                           'pinned>device', 'pinned>managed')),
    UNIQUE (world_rank, thread, call, communicator, bytes, measure, memory_kind, region, is_folded)
);

-- A cell's latency histogram: how many calls fell into each bucket; empty buckets have no row.
CREATE TABLE bucket (
    cell   INTEGER NOT NULL,
    bucket INTEGER NOT NULL CHECK (bucket <= 289),
    count  INTEGER NOT NULL,
    PRIMARY KEY (cell, bucket)
) WITHOUT ROWID;

-- The buckets' bounds, so that a histogram can be read with this file alone. low_ns <= latency < high_ns.
CREATE TABLE bucket_bound (
    bucket  INTEGER PRIMARY KEY,
    low_ns  INTEGER NOT NULL,
    high_ns INTEGER            -- null: no upper bound
);
INSERT INTO bucket_bound VALUES (0, 0, 16);
WITH RECURSIVE octave(o) AS (SELECT 4 UNION ALL SELECT o + 1 FROM octave WHERE o < 39),
               part(s) AS (SELECT 0 UNION ALL SELECT s + 1 FROM part WHERE s < 7)
INSERT INTO bucket_bound SELECT 1 + (o - 4) * 8 + s, (8 + s) << (o - 3), (9 + s) << (o - 3) FROM octave, part;
INSERT INTO bucket_bound VALUES (289, 1 << 40, NULL);

CREATE TABLE peer (
    world_rank   INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    direction    TEXT    NOT NULL CHECK (direction IN ('sent', 'received')),
    communicator INTEGER NOT NULL,  -- NCCL's, in which peer is a rank: a process does not know the world ranks of the others; 0: MPI's
    peer         SIGNED INTEGER NOT NULL CHECK (peer BETWEEN -1 AND 1 << 24),  -- world rank; -1: a process outside MPI_COMM_WORLD
    count        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    time_ns      INTEGER NOT NULL,
    PRIMARY KEY (world_rank, call, direction, communicator, peer)
) WITHOUT ROWID;

-- Single calls: those that returned in the windows of sample_window.
-- Times count from the rank's start_unix_ns; start_monotonic_ns + they are moments of the host's CLOCK_MONOTONIC.
CREATE TABLE sample (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,  -- 0: the call has none, or it was not known beforehand
    sequence     INTEGER CHECK (sequence >= 1),  -- of a collective: its number on the communicator, as in recent_collective; null: others
    start_ns     INTEGER NOT NULL,  -- entry
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns),  -- return
    completed_ns INTEGER CHECK (completed_ns >= start_ns),  -- of a nonblocking collective or message: return of the call that completed it;
                                                            -- null: not so, or not seen
    bytes        INTEGER,           -- as in cell; null: not known
    peer         SIGNED INTEGER CHECK (peer BETWEEN -2 AND 1 << 24),  -- world rank, -1: outside MPI_COMM_WORLD, -2: any source; null: none
    root         SIGNED INTEGER,  -- of a rooted collective: rank in the communicator; null: none
    request_call TEXT    NOT NULL,  -- of a call that waits for requests: the call that started the first of them, whose bytes and peer these are
    region       INTEGER NOT NULL,  -- that the call was made in; 0: none
    device_start_ns INTEGER,        -- of an NCCL operation: its kernel on the device; null: not so, or not known
    device_end_ns   INTEGER CHECK (device_end_ns >= device_start_ns),
    is_shared       BOOLEAN,  -- 1: the kernel did other operations of its group, too; null: as above
    tag             SIGNED INTEGER,  -- of the call's message; null: none, or not known
    number          INTEGER CHECK (number BETWEEN 1 AND 65535),  -- it is the n-th with this tag to (from) this peer on this
                                                                 -- communicator, modulo 65536; null: as above
    signature       INTEGER CHECK (signature BETWEEN 1 AND 65535),  -- null: the call moved nothing, or there was no room
    CHECK ((device_start_ns IS NULL) + (device_end_ns IS NULL) + (is_shared IS NULL) IN (0, 3))
);

-- What sampled calls were asked to move: their arguments, but for buffers, peers and communicators.
CREATE TABLE signature (
    world_rank     INTEGER NOT NULL,
    signature      INTEGER NOT NULL CHECK (signature BETWEEN 1 AND 65535),
    datatype       TEXT    NOT NULL,  -- 'MPI_FLOAT'; a derived type by its constructor, 'vector'; '': there is more than one (Alltoallw)
    type_bytes     INTEGER,           -- size of the datatype; null: as above
    extent         SIGNED INTEGER,    -- its extent, bytes; null: as above
    blocks         INTEGER,           -- that it lays out; null: as above, or not known
    count          INTEGER,           -- elements of the datatype; of a receive those that there was room for; null: as above
    op             TEXT    NOT NULL,  -- 'MPI_SUM'; 'user': made by MPI_Op_create; '': the call has none
    is_commutative BOOLEAN,           -- the operation; null: the call has none
    is_in_place    BOOLEAN NOT NULL,  -- 1: MPI_IN_PLACE
    counts_hash    TEXT,              -- 16 hexadecimal digits, equal for equal vectors of counts; null: the call has no vector here
    memory_kind    TEXT    NOT NULL,  -- as in cell
    PRIMARY KEY (world_rank, signature)
) WITHOUT ROWID;

-- Sampled calls with what they were asked to move.
CREATE VIEW signed_sample AS
SELECT sample.*, datatype, type_bytes, extent, blocks, count, op, is_commutative, is_in_place, counts_hash, memory_kind
FROM sample
JOIN signature USING (world_rank, signature);

-- Further messages of sampled calls: what a Sendrecv received, and what Start and Startall started.
CREATE TABLE sample_message (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,  -- that described the message; of a persistent request the one that created it, 'MPI_Send_init'
    communicator INTEGER NOT NULL,
    direction    TEXT    NOT NULL CHECK (direction IN ('sent', 'received')),
    peer         SIGNED INTEGER CHECK (peer BETWEEN -2 AND 1 << 24),  -- these as in sample
    tag          SIGNED INTEGER,
    number       INTEGER CHECK (number BETWEEN 1 AND 65535),
    bytes        INTEGER,
    start_ns     INTEGER NOT NULL,  -- of the sampled call
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns),
    completed_ns INTEGER CHECK (completed_ns >= start_ns)  -- null: the operation is blocking, or its completion was not seen
);

-- All messages of sampled calls. A message has the same tag and number on both sides; the communicators have the same identity, and each
-- rank is the other's peer. MPI_PROC_NULL is no peer.
CREATE VIEW message AS
SELECT world_rank, thread, sample.call, communicator,
       CASE WHEN sample.call IN ('MPI_Recv', 'MPI_Irecv', 'MPI_Mrecv', 'MPI_Imrecv') THEN 'received' ELSE 'sent' END AS direction,
       peer, tag, number, bytes, start_ns, end_ns, completed_ns
FROM sample
JOIN call ON call.name = sample.call
WHERE library = 'mpi' AND family = 'point-to-point' AND bandwidth = 'one-way' AND form <> 'persistent' AND peer IS NOT NULL
UNION ALL
SELECT world_rank, thread, call, communicator, direction, peer, tag, number, bytes, start_ns, end_ns, completed_ns
FROM sample_message
WHERE peer IS NOT NULL;

-- The persistent collectives that sampled calls have started: what Start and Startall started. All ranks of a communicator set theirs up in
-- the same order, so starts of different ranks are one collective if the communicators' identity, operation and number are equal.
CREATE TABLE sample_start (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,  -- that set it up, 'MPI_Allreduce_init'
    communicator INTEGER NOT NULL,
    operation    INTEGER NOT NULL CHECK (operation BETWEEN 1 AND 65535),  -- it is the n-th that was set up on the communicator
    number       INTEGER NOT NULL CHECK (number BETWEEN 1 AND 2147483647),  -- and this its n-th start
    root         SIGNED INTEGER,    -- these as in sample
    bytes        INTEGER,
    start_ns     INTEGER NOT NULL,  -- of the sampled call
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns),
    completed_ns INTEGER CHECK (completed_ns >= start_ns)  -- null: its completion was not seen
);

-- When all calls of a thread that returned were sampled (unsuccessful polls excepted).
CREATE TABLE sample_window (
    world_rank INTEGER NOT NULL,
    thread     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL CHECK (end_ns >= begin_ns)
);

-- Training steps that the program has marked (commprof_step, MPI_Pcontrol), as sampled: all, or some blocks of 1024.
CREATE TABLE step (
    world_rank INTEGER NOT NULL,
    step       INTEGER NOT NULL CHECK (step >= 1),  -- from 1
    thread     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL CHECK (end_ns >= begin_ns),  -- the next mark, or MPI_Finalize
    PRIMARY KEY (world_rank, step)
) WITHOUT ROWID;

-- Parts of the program that it has named. Cells and samples tell by number in which one a call was made: the innermost.
CREATE TABLE region (
    world_rank INTEGER NOT NULL,
    region     INTEGER NOT NULL CHECK (region >= 1),  -- from 1
    name       TEXT    NOT NULL,  -- 'epoch/forward': a region within a region
    PRIMARY KEY (world_rank, region)
) WITHOUT ROWID;

-- When threads were in regions, in the windows of sample_window.
CREATE TABLE region_span (
    world_rank INTEGER NOT NULL,
    thread     INTEGER NOT NULL,
    region     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL CHECK (end_ns >= begin_ns)
);

-- GPUs that this rank has used.
CREATE TABLE gpu_device (
    world_rank INTEGER NOT NULL,
    device     INTEGER NOT NULL,  -- from 1
    number     INTEGER NOT NULL,  -- the process's (CUDA's ordinal)
    name       TEXT    NOT NULL,
    uuid       TEXT    NOT NULL,  -- '': not known
    first_ns   INTEGER,           -- begin of the first and end of the last activity, since the rank's start; null: none was seen
    last_ns    INTEGER,
    kernels    INTEGER NOT NULL,
    copies     INTEGER NOT NULL,
    sets       INTEGER NOT NULL,
    sms        INTEGER,           -- streaming multiprocessors; null: not known
    communication_ns       INTEGER NOT NULL,  -- sum of the durations of kernels that communicate, whose grid is known
    communication_sm_ns    INTEGER NOT NULL,  -- sum of their duration x the SMs that they occupied: the blocks of the grid, at most sms
    communication_most_sms INTEGER NOT NULL,  -- the most that one of them occupied
    memory_bytes           INTEGER,           -- of the device; null: not known
    PRIMARY KEY (world_rank, device)
) WITHOUT ROWID;

-- What counters and sensors of the devices said, about once a second (NVML). Bytes are counters that begin anywhere and may begin anew:
-- only differences mean something. null: not known.
CREATE TABLE gpu_reading (
    world_rank            INTEGER NOT NULL,
    device                INTEGER NOT NULL,
    at_ns                 INTEGER NOT NULL,  -- since the rank's start
    clock_mhz             INTEGER,           -- of its multiprocessors
    memory_used_bytes     INTEGER,           -- by all processes and the driver
    nvlink_sent_bytes     INTEGER,           -- over all links, without the protocol
    nvlink_received_bytes INTEGER,
    pcie_sent_bytes       INTEGER,
    pcie_received_bytes   INTEGER,
    is_idle               BOOLEAN,
    is_power_limited      BOOLEAN,           -- the clock was lowered to stay within the power limit,
    is_heat_limited       BOOLEAN,           -- because it was too hot,
    is_hardware_limited   BOOLEAN,           -- by the hardware for another reason
    PRIMARY KEY (world_rank, device, at_ns)
) WITHOUT ROWID;

-- How long a device was in each state, exactly so: the union of what ran, over the time that was traced and summed up. Adds up over ranks.
CREATE TABLE gpu_busy (
    world_rank       INTEGER NOT NULL,
    device           INTEGER NOT NULL,
    is_computing     BOOLEAN NOT NULL,  -- a kernel that computes was running
    is_communicating BOOLEAN NOT NULL,  -- a kernel that communicates was
    is_copying       BOOLEAN NOT NULL,  -- a copy or memset was
    is_in_mpi        BOOLEAN NOT NULL,  -- a thread of the process was in an MPI call (polls excepted)
    ns               INTEGER NOT NULL,
    PRIMARY KEY (world_rank, device, is_computing, is_communicating, is_copying, is_in_mpi)
) WITHOUT ROWID;

CREATE TABLE gpu_stream (
    world_rank INTEGER NOT NULL,
    stream     INTEGER NOT NULL,  -- from 1; 1023: all that found no room
    device     INTEGER NOT NULL,
    context    INTEGER NOT NULL,  -- the tracing interface's numbers
    number     INTEGER NOT NULL,
    PRIMARY KEY (world_rank, stream)
) WITHOUT ROWID;

CREATE TABLE gpu_kernel (
    world_rank       INTEGER NOT NULL,
    kernel           INTEGER NOT NULL,  -- from 1; 65535: all that found no room
    name             TEXT    NOT NULL,  -- mangled, as the tracing interface gives it
    is_communication BOOLEAN NOT NULL,
    PRIMARY KEY (world_rank, kernel)
) WITHOUT ROWID;

-- Kernels, copies and memsets, counted apart.
CREATE TABLE gpu_activity (
    activity     INTEGER PRIMARY KEY,
    world_rank   INTEGER NOT NULL,
    stream       INTEGER NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('kernel', 'copy', 'memset')),
    kernel       INTEGER NOT NULL,  -- 0: it is none
    copy         TEXT    NOT NULL CHECK (copy IN ('', 'to device', 'to host', 'on device', 'on host', 'to peer', 'other')),  -- '': it is none
    is_graph     BOOLEAN NOT NULL,  -- 1: launched by a graph
    is_pageable  BOOLEAN NOT NULL,  -- 1: the host's side of the copy is not pinned
    is_managed   BOOLEAN NOT NULL,
    bytes        INTEGER NOT NULL,  -- of copies and memsets: up to so many, above half of it; 0
    count        INTEGER NOT NULL,
    volume_bytes INTEGER NOT NULL,  -- exact
    total_ns     INTEGER NOT NULL,
    min_ns       INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL CHECK (max_ns >= min_ns)
);

-- As bucket.
CREATE TABLE gpu_bucket (
    activity INTEGER NOT NULL,
    bucket   INTEGER NOT NULL CHECK (bucket <= 289),
    count    INTEGER NOT NULL,
    PRIMARY KEY (activity, bucket)
) WITHOUT ROWID;

-- When GPUs were traced.
CREATE TABLE gpu_tracing (
    world_rank     INTEGER NOT NULL,
    begin_ns       INTEGER NOT NULL,  -- since the rank's start
    end_ns         INTEGER NOT NULL CHECK (end_ns >= begin_ns),
    ended          TEXT    NOT NULL CHECK (ended IN ('goes on', 'duty', 'yielded', 'off', 'stopped', 'lost')),
    clock_error_ns INTEGER,           -- how far the GPU's time stamps may be off; null: not known
    records        INTEGER NOT NULL
);

-- How NCCL carried out its collectives, as it tells its profiler plugin (commprof-run --nccl-plugin).
CREATE TABLE nccl_algorithm (
    world_rank   INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,  -- as in cell
    is_folded    BOOLEAN NOT NULL,  -- 1: several sizes, above bytes / 2 and up to bytes
    algorithm    TEXT    NOT NULL,  -- NCCL's names: 'RING', 'TREE', 'NVLS', ...
    protocol     TEXT    NOT NULL,  -- 'LL', 'LL128', 'SIMPLE'
    channels     INTEGER NOT NULL,
    count        INTEGER NOT NULL,  -- how often it was launched so
    PRIMARY KEY (world_rank, call, communicator, bytes, is_folded, algorithm, protocol, channels)
) WITHOUT ROWID;

-- Single activities, in the windows of gpu_sample_window. Times count from the rank's start.
CREATE TABLE gpu_sample (
    world_rank   INTEGER NOT NULL,
    stream       INTEGER NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('kernel', 'copy', 'memset')),
    kernel       INTEGER NOT NULL,
    copy         TEXT    NOT NULL CHECK (copy IN ('', 'to device', 'to host', 'on device', 'on host', 'to peer', 'other')),
    is_graph     BOOLEAN NOT NULL,
    communicator INTEGER NOT NULL,  -- of an NCCL kernel that is known to be of one; 0
    bytes        INTEGER NOT NULL,  -- exact
    start_ns     INTEGER NOT NULL,
    end_ns       INTEGER NOT NULL CHECK (end_ns >= start_ns)
);

-- When all activities of a stream were kept, so far as they were traced at all.
CREATE TABLE gpu_sample_window (
    world_rank INTEGER NOT NULL,
    stream     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL CHECK (end_ns >= begin_ns)
);
