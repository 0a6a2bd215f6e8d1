-- What one rank of a job leaves behind (rank-<n>.db), and what `hvprof-report merge` makes of all of them: the same tables,
-- one world_rank or many. Times are nanoseconds (integers), sizes bytes. docs/SCHEMA.md defines every column.
PRAGMA application_id = 1668116582; -- "cmpf"
PRAGMA user_version = 3;

-- A process of the job.
CREATE TABLE rank (
    world_rank           INTEGER PRIMARY KEY,
    world_size           INTEGER NOT NULL,
    run_id               TEXT    NOT NULL,  -- the same on all ranks of a run
    pid                  INTEGER NOT NULL,
    thread_level         INTEGER NOT NULL,  -- 0 single, 1 funneled, 2 serialized, 3 multiple, -1 unknown
    start_unix_ns        INTEGER NOT NULL,  -- entry of MPI_Init
    start_monotonic_ns   INTEGER NOT NULL,  -- the same moment on CLOCK_MONOTONIC, which the ranks of a host share (facts boot_id, time_namespace)
    end_unix_ns          INTEGER,           -- return of MPI_Finalize, exit or MPI_Abort; null: not known
    wall_ns              INTEGER,           -- the same span on the monotonic clock; of a snapshot: up to it
    counted_ns           INTEGER NOT NULL,  -- how long calls were counted: not while MPI_Pcontrol(0) or a time window held, nor before a reset
    reset_unix_ns        INTEGER,           -- when the counters were last set to zero (MPI_Pcontrol(2)); null: never
    ended                TEXT    NOT NULL,  -- 'finalize', 'exit', 'abort', 'running' (or killed)
    abort_code           INTEGER NOT NULL,
    dropped_calls        INTEGER NOT NULL,
    untracked_requests   INTEGER NOT NULL,
    folded_cells         INTEGER NOT NULL,
    folded_communicators INTEGER NOT NULL,
    cost_init_ns         INTEGER NOT NULL,
    cost_finalize_ns     INTEGER NOT NULL,
    cost_per_call_ps     INTEGER NOT NULL,  -- picoseconds; an estimate, measured in the job
    clock_error_ppb      INTEGER NOT NULL
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
    is_main    INTEGER NOT NULL,
    -- What it was doing when this was written: the call that it was in, or has left last.
    doing_call         TEXT    NOT NULL,  -- '': none yet
    doing_communicator INTEGER NOT NULL,  -- 0: the call has none, or it was not known beforehand
    doing_is_inside    INTEGER NOT NULL,  -- 1: still inside it
    doing_since_ns     INTEGER NOT NULL,  -- when it went in (came out, where it is not inside); counted from start_unix_ns
    doing_bytes        INTEGER,           -- null: not known beforehand
    doing_peer         INTEGER,           -- world rank, -1: a process outside MPI_COMM_WORLD, -2: any source; null: none
    doing_tag          INTEGER,           -- null: none, or not known beforehand
    doing_awaited      TEXT    NOT NULL,  -- of a call that waits for requests: the call that made the first of them; then communicator,
                                          -- bytes and peer are the request's
    PRIMARY KEY (world_rank, thread)
) WITHOUT ROWID;

CREATE TABLE call (
    name   TEXT PRIMARY KEY,  -- 'MPI_Allreduce'; large-count forms are counted under the plain name
    family TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE communicator (
    world_rank      INTEGER NOT NULL,
    communicator    INTEGER NOT NULL,  -- this rank's number for it
    identity        TEXT    NOT NULL,  -- 16 hexadecimal digits, equal on all its ranks
    parent_identity TEXT,
    name            TEXT    NOT NULL,  -- MPI_Comm_set_name's; '' if none
    constructor     TEXT    NOT NULL,  -- the call that made it; '' for predefined ones and unseen constructors
    ordinal         INTEGER NOT NULL,  -- how many alike were made before it
    size            INTEGER NOT NULL,
    remote_size     INTEGER NOT NULL,  -- 0 unless inter-communicator
    comm_rank       INTEGER NOT NULL,
    members         TEXT    NOT NULL,  -- world ranks in order, '0-3,8,16-30:2'
    is_inter        INTEGER NOT NULL,
    is_freed        INTEGER NOT NULL,
    collectives     INTEGER NOT NULL,  -- how many collective calls this rank has begun on it
    sample_level    INTEGER,           -- those in blocks of 1024 whose number is a multiple of 2^level have samples; null: none has
    PRIMARY KEY (world_rank, communicator)
) WITHOUT ROWID;

-- The last collectives begun on a communicator: all its ranks begin the same ones in the same order, or hang.
CREATE TABLE recent_collective (
    world_rank   INTEGER NOT NULL,
    communicator INTEGER NOT NULL,
    sequence     INTEGER NOT NULL,  -- 1: the first on this communicator
    call         TEXT    NOT NULL,
    bytes        INTEGER,           -- null: not known beforehand (derived types, v-variants)
    root         INTEGER,           -- rank in the communicator; null: none
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
    measure      TEXT    NOT NULL,  -- 'call', 'completion', 'poll'
    place        TEXT    NOT NULL,  -- 'host', 'device'
    region       INTEGER NOT NULL,
    is_folded    INTEGER NOT NULL,  -- 1: several sizes, above bytes / 2 and up to bytes
    count        INTEGER NOT NULL,
    volume_bytes INTEGER NOT NULL,
    total_ns     INTEGER NOT NULL,
    min_ns       INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL,
    blocked_ns   INTEGER NOT NULL,
    UNIQUE (world_rank, thread, call, communicator, bytes, measure, place, region, is_folded)
);

-- A cell's latency histogram: how many calls fell into each bucket; empty buckets have no row.
CREATE TABLE bucket (
    cell   INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
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
    world_rank INTEGER NOT NULL,
    call       TEXT    NOT NULL,
    direction  TEXT    NOT NULL,  -- 'sent', 'received'
    peer       INTEGER NOT NULL,  -- world rank; -1: a process outside MPI_COMM_WORLD
    count      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    time_ns    INTEGER NOT NULL,
    PRIMARY KEY (world_rank, call, direction, peer)
) WITHOUT ROWID;

-- Single calls: of the collectives of a communicator some blocks (communicator.sample_level), of other calls those in some windows.
-- Times count from the rank's start_unix_ns; start_monotonic_ns + they are moments of the host's CLOCK_MONOTONIC.
CREATE TABLE sample (
    world_rank   INTEGER NOT NULL,
    thread       INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    communicator INTEGER NOT NULL,  -- 0: the call has none, or it was not known beforehand
    sequence     INTEGER,           -- of a collective: its number on the communicator, as in recent_collective; null: any other call
    start_ns     INTEGER NOT NULL,  -- entry
    end_ns       INTEGER NOT NULL,  -- return
    completed_ns INTEGER,           -- of a nonblocking collective: return of the call that completed it; null: not so, or not seen
    bytes        INTEGER,           -- as in cell; null: not known
    peer         INTEGER,           -- world rank, -1: a process outside MPI_COMM_WORLD, -2: any source; null: none
    root         INTEGER,           -- of a rooted collective: rank in the communicator; null: none
    awaited      TEXT    NOT NULL,  -- of a call that waits for requests: the call that made the first of them, whose bytes and peer these are
    region       INTEGER NOT NULL   -- that the call was made in; 0: none
);

-- When a thread has kept samples of all of its calls without a sequence (polls that found nothing excepted).
CREATE TABLE sample_window (
    world_rank INTEGER NOT NULL,
    thread     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL
);

-- Training steps that the program has marked (commprof_step, MPI_Pcontrol), as kept: blocks of 1024 like samples.
CREATE TABLE step (
    world_rank INTEGER NOT NULL,
    step       INTEGER NOT NULL,  -- from 1
    thread     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL,  -- the next mark, or MPI_Finalize
    PRIMARY KEY (world_rank, step)
) WITHOUT ROWID;

-- Parts of the program that it has named. Cells and samples tell by number in which one a call was made: the innermost.
CREATE TABLE region (
    world_rank INTEGER NOT NULL,
    region     INTEGER NOT NULL,  -- from 1
    name       TEXT    NOT NULL,  -- 'epoch/forward': a region within a region
    PRIMARY KEY (world_rank, region)
) WITHOUT ROWID;

-- When threads were in regions, in the windows of sample_window.
CREATE TABLE region_span (
    world_rank INTEGER NOT NULL,
    thread     INTEGER NOT NULL,
    region     INTEGER NOT NULL,
    begin_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL
);
