/* The format of a ledger file. The library writes ledgers; src/output/ (C) and report/ (Python)
 * read them. The reporter parses this file (report/commprof_report/run/ledger_format.py), so its C
 * stays simple: structs without padding, enums, and #define of a single number.
 *
 * There is one ledger per process, mapped MAP_SHARED while the job runs, so it is complete up to
 * the last finished call even if the process is killed. A header page is followed by chunks of
 * equal size, each with entries of one kind:
 *
 *     | header 4096 B | chunk 0 | chunk 1 | ... | chunk chunk_count - 1 |
 *                       chunk = chunk header 64 B, then `used` entries of `entry_bytes` each;
 *                               a chunk of cells has blocks of their histograms at its end
 *
 * The process may be killed between any two instructions, and other processes read the ledger while
 * it is written. The order of stores makes both safe:
 *
 *     writer    an entry, then `used`; a chunk's header, then `chunk_count`; a block of zeros, then
 *               its place in the cell; a cell's sums, then its bucket: that store counts the call
 *        fold   folds_begun + 1; for each cell: folding = a,b,c; live marks; folding = 0; finally
 *               folds_ended + 1
 *       reset   epoch + 1; each thread clears its cells at its next call, then stores its epoch;
 *               the GPU thread does the same
 *      sample   all other fields, then end_ticks, then signature (0 until then)
 *        page   changing its owner: owner = 0; samples cleared; other fields; owner
 *     kill      every intermediate state is consistent: each finished call counts once, the call in
 *               flight once or not at all
 *     reader    epoch, folds_begun, folds_ended; all chunks; the three again. The data are valid if
 *               folds_begun equals folds_ended and none of the three changed; else it reads again.
 *               After a kill nothing changes, so an unfinished fold is harmless
 *
 * tests/unit/test_killed.c kills the writer after each instruction; test_reading.c reads
 * continuously while it writes.
 *
 * All numbers are little-endian, as on all supported processors. Times ending in `_ns` without
 * `unix` are nanoseconds on the rank's monotonic clock; `unix` times count from 1970. Readers must
 * treat the file as untrusted input: check magic, version and sizes, clamp chunk_count to the
 * file's length and `used` to the capacity of a chunk. */
#ifndef COMMPROF_LEDGER_FORMAT_H
#define COMMPROF_LEDGER_FORMAT_H

#include <stdint.h>

#define LEDGER_MAGIC "commprof-ledger\n" /* 16 bytes, no terminator in the file */

/* A file of one line that names a ledger on a node: this, "<host> <boot id> <pid namespace> <pid>
 * <start>", a space, and the ledger's path. */
#define LEDGER_STUB "commprof-ledger-at "
#define LEDGER_VERSION 11

enum {
    LEDGER_HEADER_BYTES = 4096,
    LEDGER_CHUNK_BYTES = 65536,
    LEDGER_MOST_CHUNKS = 16384, /* a file of 1 GiB; readers ignore anything beyond */
    LEDGER_CHUNK_HEADER_BYTES = 64,
    LEDGER_COMMUNICATOR_NONE = 0,  /* slot of calls that have no communicator (MPI_Wait) */
    LEDGER_COMMUNICATOR_OTHER = 1, /* slot that all communicators share once the registry is full */
    LEDGER_RECENT_COLLECTIVES = 16,
    LEDGER_NO_RANK = INT32_MIN,
    LEDGER_NO_TAG = INT32_MIN,
    LEDGER_PAGE_SAMPLES = 64,
    LEDGER_WINDOW_NS_LOG2 = 20, /* calls are sampled in whole windows of 2^20 ns (1.05 ms) of the
                                   wall clock, by their end */
    LEDGER_GAP_NS_LOG2 = 30, /* a thread that finds no room samples none of its calls for the rest
                                of 2^30 ns (1.07 s) of the wall clock */
};

#define LEDGER_BYTES_UNKNOWN UINT64_MAX
#define LEDGER_SAMPLE_BYTES_UNKNOWN 0xffffffffffff

/* How the process ended. */
enum ledger_ended {
    LEDGER_RUNNING = 0, /* still running, or killed */
    LEDGER_FINALIZED = 1,
    LEDGER_EXITED = 2,   /* exit, _exit or exec without MPI_Finalize */
    LEDGER_ABORTED = 3,  /* MPI_Abort */
    LEDGER_SNAPSHOT = 4, /* a copy that MPI_Pcontrol(3) wrote, at end_ns: it runs on */
};

/* Usage of the host by the process up to one time, and where it ran. since_start_ns is stored last;
 * 0: there is no reading. */
enum { LEDGER_AFFINITY_WORDS = 16 };
struct ledger_usage {
    int64_t since_start_ns;
    uint64_t cpu_user_ns;
    uint64_t cpu_system_ns;
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
    uint64_t minor_faults;
    uint64_t major_faults;
    /* how long the quota of its cgroup kept processes from running; what the machine beneath the
     * host took from its cores; or LEDGER_BYTES_UNKNOWN */
    uint64_t throttled_ns, stolen_ns;
    int32_t core;      /* on which the main thread was; -1: another thread took this reading */
    int32_t numa_node; /* likewise */
    uint64_t affinity[LEDGER_AFFINITY_WORDS]; /* the cores on which the main thread may run, a bit
                                                 each; all 0: unknown (beyond 1,024) */
};

struct ledger_header {
    char magic[16];
    uint32_t version;
    uint32_t header_bytes;
    uint32_t chunk_bytes;
    uint32_t chunk_header_bytes;
    uint32_t cell_bytes;
    uint32_t histogram_buckets;
    uint32_t chunk_count; /* chunks allocated; incremented by one store, after the chunk's header is
                             written */
    uint32_t ended;       /* enum ledger_ended */

    int32_t world_rank;
    int32_t world_size;
    int64_t pid;
    int32_t thread_level; /* 0 single, 1 funneled, 2 serialized, 3 multiple; -1 unknown */
    int32_t abort_code;

    int64_t start_unix_ns; /* entry of MPI_Init on the wall clock */
    int64_t start_ns;      /* the same on the monotonic clock, which all timestamps use */
    int64_t end_unix_ns;   /* return of MPI_Finalize, or when exit or MPI_Abort was seen; 0 while
                              running */
    int64_t end_ns;

    /* Conversion of ticks (the hot path's timestamps) to nanoseconds of the monotonic clock: a
     * timestamp is clock_ns + (ticks - clock_ticks) * clock_scale / 2^32, a duration ticks *
     * clock_scale / 2^32. */
    uint64_t clock_ticks;
    int64_t clock_ns;
    uint64_t clock_scale;

    /* Calls are counted unless counting is switched off (MPI_Pcontrol, a time window). counted_ns
     * is the time counted before counting_since_ns; counting has been on since then, or is off if
     * counting_since_ns is 0. */
    int64_t counted_ns;
    int64_t counting_since_ns;
    int64_t reset_unix_ns; /* last reset of the counters (MPI_Pcontrol); 0: never */
    uint32_t epoch; /* incremented by each reset; readers ignore threads with an older epoch */
    uint32_t unused;
    uint64_t window_mask; /* calls and regions are sampled in the windows whose number has none of
                             these bits */
    uint64_t device_mask; /* the same for GPU activities, by their start */
    uint64_t step_mask;   /* and for marked steps, by the number of their page */
    uint64_t steps;       /* number of steps marked so far */
    uint64_t reset_ticks; /* last reset of the counters: earlier samples do not count; 0: never */

    /* A reader must read again if these two differ or have changed while it read. */
    uint64_t folds_begun;
    uint64_t folds_ended;
    int64_t copied_unix_ns; /* time at which this copy was written; 0: this is the ledger itself */

/* Counters and the profiler's overhead in this process. */
#define COUNTER(name) uint64_t name;
#define GPU_COUNTER(name)
#include "counters.def"

    int64_t clock_error_ppb; /* error of the clock's scale against CLOCK_MONOTONIC over the run; 0
                                if unknown */

    /* The GPU side. The fact "gpu.reason" gives the reason for gpu_state. */
    uint32_t gpu_state; /* enum ledger_gpu_state */
    uint32_t gpu_epoch; /* epoch of the GPU counts (activities, devices); they count if it equals
                           `epoch` */
#define COUNTER(name)
#define GPU_COUNTER(name) uint64_t name;
#include "counters.def"

    struct ledger_usage usage_begin; /* at the end of MPI_Init */
    /* at the end; until then when the ledger was last copied or a snapshot taken */
    struct ledger_usage usage_last;

    uint64_t gpu_uncollected_ns; /* of the last so many nanoseconds, records of GPU activities may
                                    not have been collected; renewed several times a second */
    uint64_t gpu_late_ns;        /* how long the activities of gpu_late_records lasted in total */

    /* The record (COMMPROF_RECORD): all calls are sampled in the windows from record_first to
     * record_last, too, whatever window_mask says. record_first 0: there is none. */
    uint64_t record_first;
    uint64_t record_last;
    uint64_t record_is_full; /* 1: there was no more room, and record_last has been lowered */
    uint64_t record_asked_ns;
};

enum ledger_gpu_state {
    LEDGER_GPU_NONE = 0,    /* no GPU, or not searched for */
    LEDGER_GPU_DORMANT = 1, /* a GPU is present; the program has not used it yet */
    LEDGER_GPU_TRACING = 2,
    LEDGER_GPU_PAUSED = 3,  /* between two tracing windows, or while calls are not counted */
    LEDGER_GPU_YIELDED = 4, /* while another tool traces the GPU */
    LEDGER_GPU_REFUSED = 5, /* not traced in this process */
    LEDGER_GPU_STOPPED = 6, /* traced until MPI_Finalize */
};

enum ledger_kind {
    LEDGER_CALLS = 1, /* struct ledger_call */
    LEDGER_FACTS =
        2, /* byte stream: struct ledger_fact, key, value, padding to 8; `entry_bytes` is 1 */
    LEDGER_COMMUNICATORS = 3, /* struct ledger_communicator */
    LEDGER_CELLS =
        4, /* struct ledger_cell, and from the end struct ledger_block, all of one thread */
    LEDGER_PEERS = 5,   /* struct ledger_peer, all of one thread */
    LEDGER_THREADS = 6, /* struct ledger_thread */
    LEDGER_SAMPLES = 7, /* struct ledger_page */
    LEDGER_REGIONS = 8, /* struct ledger_region */
    LEDGER_KERNELS =
        9, /* byte stream: struct ledger_kernel, name, padding to 8; `entry_bytes` is 1 */
    LEDGER_ACTIVITIES = 10,       /* struct ledger_activity */
    LEDGER_STREAMS = 11,          /* struct ledger_stream */
    LEDGER_DEVICES = 12,          /* struct ledger_device */
    LEDGER_TRACINGS = 13,         /* struct ledger_tracing */
    LEDGER_ALGORITHMS = 14,       /* struct ledger_algorithm */
    LEDGER_SIGNATURES = 15,       /* struct ledger_signature */
    LEDGER_READINGS = 16,         /* struct ledger_reading */
    LEDGER_CPU_TIMES = 17,        /* struct ledger_cpu_time */
    LEDGER_NEGOTIATIONS = 18,     /* struct ledger_negotiation */
    LEDGER_PLACES = 19,           /* struct ledger_places */
    LEDGER_NEGOTIATED_STEPS = 20, /* struct ledger_negotiated_step */
};

struct ledger_chunk {
    uint32_t kind;
    uint32_t entry_bytes;
    uint32_t used;   /* entries in use; incremented by one store, after the entry is written */
    uint32_t thread; /* index of the owning thread, for kinds that have one */
    uint8_t reserved[48];
};

/* The function behind a call number. */
struct ledger_call {
    uint32_t call;
    char name[36];      /* "MPI_Allreduce" */
    char family[16];    /* "collective" */
    char library[8];    /* "mpi", "nccl" */
    char form[12];      /* "blocking", "nonblocking", "persistent" */
    char bandwidth[16]; /* "allreduce": bandwidth formula (schema.sql) */
    char waits_for[20]; /* "root-first": the ranks its return depends on (schema.sql) */
};

/* One line of provenance: "host", "command_line", "env.OMPI_COMM_WORLD_SIZE",
 * "settings.COMMPROF_OUTPUT". Neither key nor value is terminated. A later fact with the same key
 * replaces an earlier one. */
struct ledger_fact {
    uint32_t key_bytes;
    uint32_t value_bytes;
};

enum ledger_communicator_flags {
    LEDGER_COMMUNICATOR_INTER = 1,
    LEDGER_COMMUNICATOR_FREED = 2,
    LEDGER_COMMUNICATOR_NCCL = 4, /* `members` is empty: a rank knows only its own number */
};

/* All ranks of a communicator must begin the same collectives in the same order; these entries show
 * which rank did not. */
struct ledger_collective {
    uint64_t bytes; /* as in ledger_cell; LEDGER_BYTES_UNKNOWN if not known at the call's start */
    uint32_t call;
    int32_t root; /* rank in the communicator, or LEDGER_NO_RANK */
};

struct ledger_communicator {
    uint64_t identity;        /* 64-bit hash: equal on all ranks of the communicator, different for
                                 different communicators */
    uint64_t parent_identity; /* 0: none */
    uint32_t communicator;    /* slot; cells refer to it */
    uint32_t flags;
    int32_t size;        /* of the local group */
    int32_t remote_size; /* 0 unless inter-communicator */
    int32_t comm_rank;
    uint32_t constructor; /* number of the call that created it; 0: predefined or not seen */
    /* number of earlier communicators with the same constructor, parent and members */
    uint32_t ordinal;
    uint32_t reserved;
    char name[128];       /* set by MPI_Comm_set_name, else empty */
    char members[328];    /* world ranks in communicator order, "0-3,8,16-30:2"; ends in "..." if
                             truncated */
    uint64_t collectives; /* begun by this rank on it; incremented by one store, after the entry
                             below is written */
    struct ledger_collective recent[LEDGER_RECENT_COLLECTIVES]; /* the n-th (from 1) is at index (n
                                                                   - 1) modulo the array's length */
};

enum ledger_measure {
    LEDGER_CALL = 0, /* duration of the call itself */
    LEDGER_COMPLETION =
        1, /* from the start of a nonblocking operation to the return of the completing call */
    LEDGER_POLL = 2, /* duration of an unsuccessful poll (Test, Iprobe) */
    LEDGER_DEVICE_TIME =
        3,               /* from begin to end of the device kernels of an NCCL operation or group */
    LEDGER_CAPTURED = 4, /* duration of a call captured into a graph: no data moved yet */
};

enum ledger_cell_flags {
    LEDGER_CELL_FOLDED =
        1, /* merged: sizes above bytes / 2 and up to bytes, of several regions; `region` is 0 */
};

/* The memory kind of a buffer. A cell has that of the send buffer | that of the receive buffer <<
 * 4; a call with one buffer has its kind twice, a call without buffers LEDGER_HOST. */
enum ledger_memory_kind {
    LEDGER_HOST = 0,
    LEDGER_DEVICE = 1,
    LEDGER_MANAGED = 2, /* migrates between host and device */
    LEDGER_PINNED = 3,  /* page-locked host memory that a GPU can access */
    LEDGER_MEMORY_KINDS
};
enum { LEDGER_MEMORY_KIND_TO_BIT = 4 };

/* Log-linear buckets of nanoseconds: bucket 0 is below 16 ns, then eight equal buckets for each
 * octave from 2^4 to 2^47 ns; the last is 2^47 ns (39 h) and above. A bucket's middle differs by
 * at most 1/16 from any value in it. */
enum {
    HISTOGRAM_FIRST_OCTAVE = 4,
    HISTOGRAM_LAST_OCTAVE = 46,
    HISTOGRAM_SUB_BUCKETS = 8,
    HISTOGRAM_BUCKETS =
        2 + (HISTOGRAM_LAST_OCTAVE - HISTOGRAM_FIRST_OCTAVE + 1) * HISTOGRAM_SUB_BUCKETS, /* 346 */
    HISTOGRAM_BLOCKS = HISTOGRAM_LAST_OCTAVE - HISTOGRAM_FIRST_OCTAVE + 3,                /* 45 */
};

/* Most histograms have calls in a few octaves alone, so a cell has a block for each of these:
 * bucket b is counter (b + 7) % 8 of block (b + 7) / 8. The first block has bucket 0 alone, the
 * last one bucket 345. Cell and block may be in different chunks of their thread. */
struct ledger_block {
    uint64_t counts[HISTOGRAM_SUB_BUCKETS];
};

/* Readers merge cells with equal keys (of several threads, or after folding): add all fields,
 * except min and max. A cell's count is the sum of its buckets, so a single store counts a call. */
struct ledger_cell {
    uint64_t bytes;
    uint16_t call;
    uint16_t communicator;
    uint16_t region;
    uint8_t measure : 4; /* enum ledger_measure: the low four bits */
    uint8_t flags : 4;   /* enum ledger_cell_flags */
    uint8_t memory_kind; /* enum ledger_memory_kind of the send and the receive buffer */
    uint64_t total_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t volume_bytes;
    uint64_t blocked_ns; /* for completions: time inside the starting call, Wait and Test */
    uint32_t last_block; /* the writer's: that of the last call; HISTOGRAM_BLOCKS: none yet */
    int32_t last_at;     /* the writer's: blocks[last_block] */
    uint64_t live;       /* 1: counts; 0: free, or folded away */
    int32_t blocks[HISTOGRAM_BLOCKS]; /* where each is, in bytes from this cell; 0: nowhere, its
                                         counts are 0 */
    uint32_t number;                  /* of this cell among the thread's, from 1 */
};

enum ledger_direction { LEDGER_SENT = 0, LEDGER_RECEIVED = 1 };

enum {
    LEDGER_PEER_OUTSIDE =
        -1,               /* a process outside this job's MPI_COMM_WORLD (spawned or connected) */
    LEDGER_PEER_ANY = -2, /* MPI_ANY_SOURCE, while the call has not returned */
};

enum { LEDGER_PEER_SLOT_BIT = 4 };

struct ledger_peer {
    int32_t peer; /* world rank, or LEDGER_PEER_OUTSIDE; if `direction` names a communicator, the
                     rank in it */
    uint16_t call;
    /* enum ledger_direction | slot of NCCL's communicator << LEDGER_PEER_SLOT_BIT */
    uint16_t direction;
    uint64_t count;
    uint64_t bytes;
    uint64_t time_ns; /* blocking: durations; nonblocking receives: completion times; nonblocking
                         sends: of the call */
};

/* A thread's current or last call, packed: the call's number; the communicator's slot; whether the
 * thread is still inside; and, for a call that waits for requests, the call that created the first
 * of them. */
enum {
    LEDGER_DOING_SLOT_BIT = 16,
    LEDGER_DOING_INSIDE_BIT = 32,
    LEDGER_DOING_REQUEST_CALL_BIT = 48
};
#define LEDGER_DOING_INSIDE (1ull << LEDGER_DOING_INSIDE_BIT)

struct ledger_thread {
    /* `doing` is stored after the fields that describe it; they are valid if `doing` is the same
     * before and after reading them. */
    uint64_t doing;
    uint64_t since_ticks; /* entry of the call; its return if the thread is no longer inside */
    uint64_t bytes;       /* LEDGER_BYTES_UNKNOWN if not known at entry */
    int32_t peer;         /* world rank, LEDGER_PEER_OUTSIDE, LEDGER_PEER_ANY, or LEDGER_NO_RANK */
    int32_t tag;          /* or LEDGER_NO_TAG */
    uint64_t sampled_since_ticks; /* samples are complete from here on; earlier ones may be missing
                                     in sampled windows; 0: none missing */
    uint64_t unused[3];

    uint32_t thread;
    uint32_t is_main; /* 1: the process's first thread */
    int64_t tid;
    uint32_t epoch; /* epoch of its cells and peers; they count if it equals the header's */
    uint32_t reserved_too;
    /* Storing this one word commits the folding of cells b and c into a new cell a: a | b << 21 | c
     * << 42, each a cell's number. Non-zero: a counts, b and c do not, regardless of their
     * `live`. */
    uint64_t folding;
    char name[16];
    uint8_t reserved[16];
};

/* An entry of a log that is thinned (thinned.h), as far as all are alike. */
struct ledger_thinned {
    uint8_t data[56];
    uint32_t tick; /* the writer's: of the periods of readings, the one that this one belongs to */
    uint16_t more_data;
    uint16_t live; /* stored last; 1: counts */
};

/* How long a thread was on a core and how long it was ready but had none, as the kernel's scheduler
 * counts it; and what the readings so far have found it at: inside an MPI or NCCL call or outside,
 * ready (on a core or waiting for one), asleep, or waiting for a disk. Sums since its first
 * reading; where the operating system's thread is another one now, they go on. */
struct ledger_cpu_time {
    int64_t at_ns;       /* on the monotonic clock */
    uint64_t core_ns;    /* on a core */
    uint64_t waiting_ns; /* for a core; LEDGER_BYTES_UNKNOWN: the kernel does not say */
    uint32_t outside_ready, outside_asleep, outside_disk; /* readings that found it so, */
    uint32_t inside_ready, inside_asleep, inside_disk;
    uint64_t reserved;
    uint32_t tick; /* as in struct ledger_thinned */
    uint16_t thread;
    uint16_t live;
};

/* Negotiation: Horovod's ranks agree each cycle on the tensors that all of them can sum, by an
 * Allreduce with MPI_BAND over words of 64 bits (a round). Its first places (bits) are status bits.
 * Each of the others is a tensor: given by a rank that can sum it, left by the operation if all
 * can. Without Horovod's cache a round is a Gather of what is new on each rank, by name, and a
 * Bcast of what all have; rank 0, which sends itself nothing, is taken to give what some of the
 * others give. A rank's time is cut by the returns of its rounds:
 *
 *     ahead     it gave more than came back: until the next round it waits for others
 *     idle      it gave none
 *     else      all that it gave was agreed on
 *
 * Counters of one thread on one communicator. They count if `epoch` equals the header's; `rounds`
 * is stored last. */
enum {
    LEDGER_STATUS_PLACES = 3, /* shut down; some go by name; some are no longer valid: inverted */
    LEDGER_NAMED_PLACE = 1,
    LEDGER_WORDS_MOST = 1024, /* of a round */
    LEDGER_WORD_PLACES = 64,
};
struct ledger_negotiation {
    uint64_t rounds;
    uint64_t rounds_ahead, rounds_idle;
    uint64_t rounds_by_name; /* after which some rank had tensors that go by name */
    uint64_t disbelieved;    /* calls in which more came back than was given: no rounds */
    uint64_t ahead_ns, idle_ns;
    uint64_t ahead_moving_ns; /* of ahead_ns after rounds that agreed on some tensors, too */
    uint64_t agreed;          /* tensors in all rounds */
    /* steps that have ended, and sums over them (struct ledger_negotiated_step): from `handed` to
     * `agreed`, from `handed` to `done`, from `handed_after` to `handed` */
    uint64_t steps;
    uint64_t others_ns, exposed_ns, uncertain_ns;
    uint64_t first_ticks, last_ticks; /* begin of the first round, end of the last */
    uint64_t ahead_since_ticks;       /* end of the first round of those ahead in a row; 0: it does
                                         not wait for others */
    uint32_t last_offered, last_agreed; /* tensors of the last round */
    uint32_t offered_most, words_most;
    uint32_t thread, communicator; /* slot */
    uint32_t epoch;
    uint32_t reserved[9];
};

/* How often each place of a word was agreed on. */
struct ledger_places {
    uint32_t thread, communicator;
    uint32_t word; /* from 0 */
    uint32_t epoch;
    uint64_t agreed[LEDGER_WORD_PLACES];
};

/* A step in the log of a negotiation (thinned.h): it ends when all that was agreed on in the step
 * before has been agreed on, or a place is agreed on again; so it is the same on all ranks. It
 * counts unless it began before reset_ticks of the header. */
struct ledger_negotiated_step {
    uint64_t after_ticks;        /* `done` of the step before */
    uint64_t begin_ticks;        /* begin of the first round that offered one of its tensors */
    uint64_t handed_after_ticks; /* the program handed over its last tensor after this round began;
                                    equal to `after`: at any time since then */
    uint64_t handed_ticks;       /* and before this one did */
    uint64_t agreed_ticks;       /* end of the round that agreed on its last tensor */
    uint64_t done_ticks;         /* end of the thread's last call before the next round */
    uint32_t tensors;
    uint16_t thread, communicator;
    uint32_t step; /* from 1; as `tick` in struct ledger_thinned */
    uint16_t reserved;
    uint16_t live;
};

/* Samples: single calls. All ranks sample the same stretches of time without communicating: a call
 * belongs to the window in which it returns (nanoseconds since 1970, measured from start_unix_ns
 * with the monotonic clock, divided by 2^LEDGER_WINDOW_NS_LOG2), because ranks that wait for each
 * other return together, however late one of them has come. A window is sampled if its number has
 * none of the bits of window_mask. When the log is full, the mask gets one bit more: the windows
 * still sampled are a subset, and the pages of the others are reused one by one. The lowest bit
 * says how long a stretch of consecutive windows is (2^bit), the number of bits how much of the
 * time is left out. Masks may differ between ranks; all ranks have the windows that none of the
 * masks excludes.
 *
 * A record is a range of windows in which threads' pages come from a room of their own, and are
 * never reused: so it has all their calls, and the log of the other windows is as it would be
 * without it.
 *
 * A page has one owner: a thread (consecutive calls and regions), a GPU stream (its activities, by
 * device_mask), or the process's marked steps (64 of them in a row, by step_mask and the page's
 * number: that of its first step minus 1, divided by 64). Readers ignore samples in a thread's or
 * stream's page that are in no sampled window and not in the record. */
enum ledger_owner {
    LEDGER_NOBODY = 0,
    LEDGER_OF_THREAD = 1,
    LEDGER_OF_STREAM = 2,
    LEDGER_OF_STEPS = 3
};

enum ledger_sample_flags {
    LEDGER_SAMPLE_MESSAGE = 1,  /* a point-to-point message: `number` and `tag` are valid, `thread`
                                   and `request_call` are not */
    LEDGER_SAMPLE_RECEIVED = 2, /* of a message: received, not sent */
    LEDGER_SAMPLE_FURTHER = 4,  /* no call: a further message of a call that has a sample of its own
                                   (Sendrecv, Startall); not a message: a persistent collective that
                                   it starts; `operation` and `starts` are valid */
    LEDGER_SAMPLE_EPOCH =
        LEDGER_SAMPLE_FURTHER | LEDGER_SAMPLE_RECEIVED, /* a partner in an epoch of
                                   post, start, complete and wait that a call with a sample of its
                                   own opens or closes; `partners` and `epoch` are valid, and
                                   `sequence` is the window: as the object of LEDGER_ON_OBJECT */
    LEDGER_SAMPLE_ROUND = LEDGER_SAMPLE_RECEIVED,       /* no message: a round of a negotiation;
                                                     `offered` and `agreed` are valid */
    LEDGER_SAMPLE_POLLED = 8, /* a call that completes requests, finds a message or ends an
                                 exposure, before which the thread has polled for it in vain:
                                 `completed_ticks` is the begin of the first such poll, and
                                 `sequence` the duration of all, in ticks */
};

struct ledger_sample {
    uint64_t start_ticks;
    uint64_t end_ticks;       /* stored last; 0: no sample (yet) */
    uint64_t completed_ticks; /* nonblocking collective or message: end of the call that completed
                                 it; NCCL operation: end of its kernel; else 0 */
    union {
        struct {
            uint64_t bytes : 48; /* LEDGER_SAMPLE_BYTES_UNKNOWN: not known, or so many or more */
            uint64_t signature : 16; /* number of a struct ledger_signature, or 0 */
        };
        uint64_t bytes_and_signature;
    };
    int32_t peer; /* as in ledger_thread; for collectives the root's rank in the communicator, or
                     LEDGER_NO_RANK */
    uint16_t call : 12;    /* 0: a region, or a step. Further ones: the call that describes them, of
                              persistent ones their creator */
    uint16_t flags : 4;    /* enum ledger_sample_flags */
    uint16_t communicator; /* slot */
    union {
        uint16_t number;    /* of a message: the n-th with this tag to (from) this peer on this
                               communicator, modulo 65536; 0: unknown */
        uint16_t operation; /* of a persistent collective: the n-th that was set up on this
                               communicator, from 1 */
        uint16_t partners;  /* of an epoch: how many it has */
        uint16_t thread;
    };
    uint16_t region; /* region of the call; for a region's sample the region itself */
    union {
        uint32_t tag_or_request; /* to write the one or the other */
        struct {
            uint16_t request_call;
            uint16_t reserved;
        };
        struct {
            uint16_t offered, agreed; /* tensors of a round, at most so many */
        };
        int32_t tag;    /* or LEDGER_NO_TAG */
        int32_t starts; /* of a persistent collective: how often its request has been started, with
                           this time */
        int32_t epoch; /* the how-manieth with this partner on this window, modulo 2^31 - 1, from 1;
                           0: not known, nor is the partner; this sample is of all */
        uint32_t device_span; /* NCCL operations with completed_ticks: the kernel's duration,
                                 LEDGER_DEVICE_SPAN_* */
    };
    /* of a collective: its number on the communicator, from 1; of one on a window or a file:
     * LEDGER_ON_OBJECT; 0: another call */
    uint64_t sequence;
};

/* The sequence of a collective on a window or a file: LEDGER_ON_OBJECT, the object (the n-th that
 * was created on the communicator, from 1), and the collective's number on that, from 1. */
enum { LEDGER_OBJECT_BIT = 40, LEDGER_ON_OBJECT_BIT = 61 };
#define LEDGER_ON_OBJECT (1ull << LEDGER_ON_OBJECT_BIT)

/* A kernel's duration in units of 16 ns (31 bits, at most 34 s), above the lowest bit: other
 * operations of the group share the kernel. */
enum { LEDGER_DEVICE_SPAN_SHARED = 1, LEDGER_DEVICE_SPAN_UNIT_NS = 16 };

/* Request of a call: its arguments, but for the buffers, the peer and the communicator. Calls with
 * equal ones share a number. */
enum ledger_signature_flags {
    LEDGER_SIGNATURE_IN_PLACE = 1,    /* MPI_IN_PLACE */
    LEDGER_SIGNATURE_COMMUTATIVE = 2, /* of the operation */
    LEDGER_SIGNATURE_COUNTS = 4,      /* `counts_hash` is valid */
};
struct ledger_signature {
    uint32_t signature;  /* from 1 */
    uint16_t flags;      /* enum ledger_signature_flags */
    uint8_t memory_kind; /* as in ledger_cell */
    uint8_t reserved;
    uint64_t count; /* of elements; 0: there is more than one datatype */
    uint64_t type_bytes;
    int64_t extent;
    uint64_t blocks;                 /* 0: not known */
    uint64_t counts_hash;            /* of the vector of counts; equal for equal vectors */
    uint64_t buffer_at, received_at; /* addresses of the buffers; 0: not recorded */
    char datatype[32]; /* "MPI_FLOAT"; "vector": a derived type's constructor; "": there is more
                             than one */
    char op[16];       /* "MPI_SUM"; "user": the program's; "": none */
};

/* In a stream's page each sample is one GPU activity, in the same 56 bytes. */
struct ledger_activity_sample {
    uint64_t start_ticks;
    uint64_t end_ticks; /* as above */
    uint64_t unused;
    uint64_t bytes;  /* of a copy or memset; else 0 */
    uint32_t kernel; /* 0: not a kernel */
    uint16_t zero;
    uint16_t communicator; /* slot, for NCCL kernels whose communicator is known; else 0 */
    uint16_t stream;       /* slot */
    uint8_t kind;          /* enum ledger_activity_kind */
    uint8_t copy;          /* enum ledger_copy */
    uint8_t flags;         /* enum ledger_activity_flags */
    uint8_t reserved[11];
};

struct ledger_page {
    uint64_t owner; /* enum ledger_owner | number (thread, stream) << 8; LEDGER_NOBODY while the
                       page is being changed */
    uint64_t first; /* number of the window in which it was opened; of a page of steps, from 0 */
    uint64_t until_ticks;  /* from here on, to the end of window `last`, there was no room for the
                              owner's samples; 0: there was */
    uint64_t anchor_ticks; /* these ticks ... */
    int64_t anchor_ns;   /* ... equal this time of CLOCK_MONOTONIC: in long runs more accurate than
                            the header's scale alone */
    uint32_t unfinished; /* incomplete nonblocking collectives in it */
    uint32_t is_open;    /* samples are being added */
    uint64_t last;       /* number of the last window that it tells of, once it is full */
    uint64_t reserved;
    struct ledger_sample samples[LEDGER_PAGE_SAMPLES];
};

/* A named part of the program. Regions may be nested: "epoch/forward". */
struct ledger_region {
    uint32_t region; /* from 1; 0 is the program outside all regions */
    uint32_t reserved;
    char name[120];
};

/* GPU activities, all written by the GPU thread from the tracing interface's records. */

enum ledger_activity_kind {
    LEDGER_ACTIVITY_KERNEL = 1,
    LEDGER_ACTIVITY_COPY = 2,
    LEDGER_ACTIVITY_SET = 3
};

enum ledger_copy {
    LEDGER_COPY_NONE = 0,
    LEDGER_COPY_TO_DEVICE = 1,
    LEDGER_COPY_TO_HOST = 2,
    LEDGER_COPY_ON_DEVICE = 3,
    LEDGER_COPY_ON_HOST = 4,
    LEDGER_COPY_TO_PEER = 5, /* from one device to another */
    LEDGER_COPY_OTHER = 6,
};

enum ledger_activity_flags {
    LEDGER_ACTIVITY_GRAPH = 1,    /* launched by a graph */
    LEDGER_ACTIVITY_PAGEABLE = 2, /* a copy whose host side is not pinned */
    LEDGER_ACTIVITY_MANAGED = 4,  /* a copy from or to managed memory */
};

/* A kernel's name, as the GPU's tracing interface gives it (mangled). */
struct ledger_kernel {
    uint32_t kernel; /* from 1; LEDGER_KERNEL_OTHER: all others, once the table is full */
    uint32_t name_bytes;
    uint32_t is_communication; /* 1: a kernel of NCCL or another communication library */
    uint32_t reserved;
};
enum { LEDGER_KERNEL_OTHER = UINT16_MAX };

/* The key is (kind, kernel, copy, flags, size class, stream). Counts as in struct ledger_cell. */
struct ledger_activity {
    uint64_t bytes;  /* size class of copies and memsets: up to this power of two, above half of it;
                        0 for kernels */
    uint32_t kernel; /* 0: not a kernel */
    uint16_t stream; /* slot */
    uint8_t kind;    /* enum ledger_activity_kind */
    uint8_t copy;    /* enum ledger_copy */
    uint8_t flags;   /* enum ledger_activity_flags */
    uint8_t live;    /* 1: counts */
    uint8_t reserved[6];
    uint64_t total_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t volume_bytes; /* exact */
    uint64_t buckets[HISTOGRAM_BUCKETS];
    uint64_t unused[7];
};

struct ledger_stream {
    uint32_t stream;  /* slot, from 1; LEDGER_STREAM_OTHER: all others, once the table is full */
    uint32_t device;  /* slot of its device */
    uint32_t context; /* the tracing interface's numbers */
    uint32_t number;
    uint64_t sampled_since_ticks; /* as in ledger_thread */
    uint64_t reserved[5];
};
enum { LEDGER_STREAM_OTHER = 1023 };

/* States of a device, which may overlap: a compute kernel runs, a communication kernel runs, a copy
 * or memset runs, and a thread of the process is in an MPI call that waits or moves data. */
enum ledger_busy {
    LEDGER_COMPUTING = 1,
    LEDGER_COMMUNICATING = 2,
    LEDGER_COPYING = 4,
    LEDGER_IN_MPI = 8,
    LEDGER_BUSY_STATES = 16
};

struct ledger_device {
    uint32_t device; /* slot, from 1 */
    uint32_t number; /* the process's CUDA ordinal */
    char name[64];
    char uuid[48]; /* "GPU-...", of a MIG instance "MIG-..."; "": not known */
    uint64_t state_ns[LEDGER_BUSY_STATES]; /* time in exactly this combination of states; 0: idle.
                                              The sum of all is the time traced and summed up. */
    int64_t first_ns, last_ns; /* begin of the first and end of the last activity, on the monotonic
                                  clock; 0: none */
    uint64_t kernels, copies, sets;  /* how many */
    uint32_t sms;                    /* its multiprocessors; 0: not known */
    uint32_t communication_most_sms; /* that one communication kernel occupied: as many as its grid
                                        has blocks, at most all */
    /* sum of the durations of communication kernels whose grid is known, */
    uint64_t communication_ns;
    uint64_t communication_sm_ns; /* and of duration x multiprocessors that it occupied */
    /* of the device, as the vendor's management library gives it; 0: not known */
    uint64_t memory_bytes;
};

/* Readings of a device's counters and sensors at one time. When the table is full, every second
 * reading is left out. */
enum ledger_reading_limits {
    LEDGER_READING_KNOWN = 1, /* the others are valid */
    LEDGER_READING_IDLE = 2,
    LEDGER_READING_POWER = 4, /* the clock is lowered: to stay within the power limit, */
    LEDGER_READING_HEAT = 8,  /* because it is too hot, */
    LEDGER_READING_HARDWARE =
        16 /* by the hardware for another reason, such as the power supply's signal */
};
struct ledger_reading {
    int64_t at_ns; /* on the monotonic clock */
    uint64_t nvlink_sent_bytes, nvlink_received_bytes, pcie_sent_bytes,
        pcie_received_bytes; /* counters that begin anywhere; these and
                                the next: or LEDGER_BYTES_UNKNOWN */
    uint64_t memory_used_bytes;
    uint32_t device;    /* slot */
    uint32_t clock_mhz; /* of its multiprocessors; 0: not known */
    uint32_t tick;      /* as in struct ledger_thinned */
    uint16_t limits;    /* enum ledger_reading_limits */
    uint16_t live;
};

/* A period in which the GPUs were traced. */
enum ledger_tracing_end {
    LEDGER_TRACING_GOES_ON = 0,
    LEDGER_TRACING_DUTY = 1,    /* end of the tracing window */
    LEDGER_TRACING_YIELDED = 2, /* another tool took over */
    LEDGER_TRACING_OFF = 3,     /* calls are not counted (MPI_Pcontrol, a time window) */
    LEDGER_TRACING_STOPPED = 4, /* end of the job */
    LEDGER_TRACING_LOST = 5,    /* records stopped arriving */
};

/* The part of the run that a window is of. The GPU counts are those of the windows with the highest
 * number: a window of a better part replaces what was counted before, and readers ignore the
 * entries with lower numbers. */
enum ledger_tracing_part {
    LEDGER_PART_ANY = 0, /* windows are not chosen by it; or one that was to replace others has had
                            no record yet */
    LEDGER_PART_FIRST_USE = 1, /* from the first use of a GPU on */
    LEDGER_PART_LATER = 2,     /* a minute later; steps were not seen to repeat */
    LEDGER_PART_STEPS = 3,     /* steps repeated */
};

struct ledger_tracing {
    int64_t begin_ns, end_ns; /* on the monotonic clock; end 0: still tracing */
    uint32_t ended;           /* enum ledger_tracing_end */
    uint32_t clock_error_ns;  /* upper bound of the error of GPU timestamps on the host's clock;
                                 UINT32_MAX: unknown */
    uint64_t records;
    uint32_t part; /* enum ledger_tracing_part */
    uint32_t unused;
    uint64_t reserved[3];
};

/* NCCL's choice of algorithm and protocol, from its profiler plugin. Counts only if `epoch` equals
 * the header's. */
struct ledger_algorithm {
    uint64_t bytes; /* as in ledger_cell; if is_folded, sizes up to this and above half of it */
    uint64_t count; /* number of launches */
    uint16_t call;
    uint16_t communicator; /* slot */
    uint16_t channels;
    uint8_t is_folded;
    uint8_t reserved;
    uint32_t epoch;
    uint32_t reserved_too;
    char algorithm[16]; /* NCCL's names: "RING", */
    char protocol[16];  /* "SIMPLE" */
};

_Static_assert(sizeof(struct ledger_algorithm) == 64, "algorithm");
_Static_assert(sizeof(struct ledger_sample) == 56, "sample");
_Static_assert(sizeof(struct ledger_signature) == 112, "signature");
_Static_assert(sizeof(struct ledger_activity_sample) == 56, "activity sample");
_Static_assert(sizeof(struct ledger_activity) == 2880, "activity: whole cache lines");
_Static_assert(sizeof(struct ledger_stream) == 64, "stream");
_Static_assert(sizeof(struct ledger_device) == 320, "device");
_Static_assert(sizeof(struct ledger_reading) == 64, "reading");
_Static_assert(sizeof(struct ledger_thinned) == 64, "thinned");
_Static_assert(sizeof(struct ledger_cpu_time) == 64, "CPU time");
_Static_assert(sizeof(struct ledger_negotiation) == 192, "negotiation: whole cache lines");
_Static_assert(sizeof(struct ledger_places) == 528, "places");
_Static_assert(sizeof(struct ledger_negotiated_step) == 64, "step of a negotiation");
_Static_assert(sizeof(struct ledger_tracing) == 64, "tracing");
_Static_assert(sizeof(struct ledger_page) == 3648, "page");
_Static_assert(sizeof(struct ledger_region) == 128, "region");
_Static_assert(sizeof(struct ledger_header) <= LEDGER_HEADER_BYTES, "the header fits its page");
_Static_assert(sizeof(struct ledger_chunk) == LEDGER_CHUNK_HEADER_BYTES, "chunk header");
_Static_assert(sizeof(struct ledger_call) == 112, "call");
_Static_assert(sizeof(struct ledger_communicator) == 768, "communicator");
_Static_assert(sizeof(struct ledger_block) == 64, "block: a cache line");
_Static_assert(sizeof(struct ledger_cell) == 256, "cell: whole cache lines");
_Static_assert(sizeof(struct ledger_peer) == 32, "peer");
_Static_assert(sizeof(struct ledger_thread) == 128,
               "thread: what it is doing has a cache line of its own");

#endif
