/* What a ledger file looks like. This header is the whole agreement between the library that writes a ledger and whoever
 * reads one: src/output/ in C, report/ in Python (report/commprof_report/ledger.py mirrors it, and a test compares both).
 *
 * A ledger is one file per process, mapped MAP_SHARED while the job runs, so it is complete up to the last finished call
 * whatever ends the process. It is a header page followed by equal chunks, each holding entries of one kind:
 *
 *     | header 4096 B | chunk 0 | chunk 1 | ... | chunk chunk_count - 1 |
 *                       chunk = chunk header 64 B, then `used` entries of `entry_bytes` each
 *
 * Its process may be killed between any two instructions, and others read it while it is written:
 *
 *     writer    an entry, then `used`; a chunk's header, then `chunk_count`; sums, then the bucket, whose one store counts the call
 *               fold: folds_begun + 1; for each cell: folding = a,b,c; live marks; folding = 0; at last folds_ended + 1
 *               reset: epoch + 1; then each thread, at its next call: its cells; then its epoch; likewise what is counted of GPUs
 *               sample: all of it, then end_ticks; a page for another owner: owner = 0; its samples are cleared; the rest; owner
 *     killer    any of these states is whole: each call counts once, the one in flight once or not
 *     reader    epoch, folds_begun, folds_ended; all chunks; the three again. It believes what it has read if both folds were equal
 *               and all three are the same still; else it reads again. After a kill nothing moves: then an open fold does no harm
 *
 * tests/unit/test_killed.c kills it after each instruction, test_reading.c reads it at all times at once.
 *
 * Every number is little-endian, as on all supported processors. Times ending in `_ns` without `unix` are nanoseconds on
 * the rank's monotonic clock; `unix` times count from 1970. A reader must treat the file as foreign input: check magic,
 * version and sizes, clamp chunk_count to the file's length and `used` to what fits in a chunk. */
#ifndef COMMPROF_LEDGER_FORMAT_H
#define COMMPROF_LEDGER_FORMAT_H

#include <stdint.h>

#define LEDGER_MAGIC "commprof-ledger\n" /* 16 bytes, no terminator in the file */
#define LEDGER_VERSION 5

enum {
    LEDGER_HEADER_BYTES = 4096,
    LEDGER_CHUNK_BYTES = 65536,
    LEDGER_MOST_CHUNKS = 16384, /* a file of 1 GiB; no reader looks at more */
    LEDGER_CHUNK_HEADER_BYTES = 64,
    LEDGER_COMMUNICATOR_NONE = 0,  /* slot of calls that have no communicator (MPI_Wait) */
    LEDGER_COMMUNICATOR_OTHER = 1, /* slot that all communicators share once the registry is full */
    LEDGER_RECENT_COLLECTIVES = 16,
    LEDGER_NO_RANK = INT32_MIN,
    LEDGER_NO_TAG = INT32_MIN,
    LEDGER_PAGE_SAMPLES = 64,
    LEDGER_BLOCK_SAMPLES = 1024,   /* of the calls that have a sequence, whole blocks of so many are kept; the first is number 1 */
    LEDGER_WINDOW_NS_LOG2 = 30,    /* of the others, all those that begin in a window of 2^30 ns (1.07 s) of the wall clock */
    LEDGER_SAMPLE_LEVEL_NONE = 63, /* nothing is kept */
};

#define LEDGER_BYTES_UNKNOWN UINT64_MAX

/* How the process ended, as far as the ledger knows. */
enum ledger_ended {
    LEDGER_RUNNING = 0, /* still running, or killed: nobody had the time to say */
    LEDGER_FINALIZED = 1,
    LEDGER_EXITED = 2,  /* exit() without MPI_Finalize */
    LEDGER_ABORTED = 3, /* MPI_Abort */
};

struct ledger_header {
    char magic[16];
    uint32_t version;
    uint32_t header_bytes;
    uint32_t chunk_bytes;
    uint32_t chunk_header_bytes;
    uint32_t cell_bytes;
    uint32_t histogram_buckets;
    uint32_t chunk_count; /* chunks handed out; grows by one store, after the chunk's header is in place */
    uint32_t ended;       /* enum ledger_ended */

    int32_t world_rank;
    int32_t world_size;
    int64_t pid;
    int32_t thread_level; /* 0 single, 1 funneled, 2 serialized, 3 multiple; -1 unknown */
    int32_t abort_code;

    int64_t start_unix_ns; /* entry of MPI_Init on the wall clock */
    int64_t start_ns;      /* and on the monotonic clock that all timestamps use */
    int64_t end_unix_ns;   /* return of MPI_Finalize, or when exit or MPI_Abort was seen; 0 while running */
    int64_t end_ns;

    /* Ticks, as timestamps of the hot path are kept, to nanoseconds of the monotonic clock: a moment is
     * clock_ns + (ticks - clock_ticks) * clock_scale / 2^32, a span ticks * clock_scale / 2^32. */
    uint64_t clock_ticks;
    int64_t clock_ns;
    uint64_t clock_scale;

    /* Calls are counted while nothing has switched that off (MPI_Pcontrol, a time window). counted_ns is how long that was, up to
     * counting_since_ns; from there on it is going on, unless counting_since_ns is 0. */
    int64_t counted_ns;
    int64_t counting_since_ns;
    int64_t reset_unix_ns; /* when the counters were set to zero (MPI_Pcontrol); 0: never */
    uint32_t epoch;        /* grows with each reset; threads that have not caught up count for nothing */
    uint32_t window_level; /* of calls without a sequence, windows whose number is a multiple of 2^level are kept */
    uint32_t step_level;   /* of marked steps, as a communicator's sample_level */
    uint32_t device_level; /* of what GPUs did, as window_level */
    uint64_t steps;        /* marked so far */
    uint64_t reset_ticks;  /* when the counters were set to zero: samples from before do not count; 0: never */

    /* A reader of a ledger that is being written takes it again if these two differ or have changed while it read. */
    uint64_t folds_begun;
    uint64_t folds_ended;
    int64_t copied_unix_ns; /* of a copy: when it was made; 0: this is the ledger itself */

    uint64_t dropped_calls;        /* calls made but not recorded: the ledger was full and could not fold */
    uint64_t untracked_requests;   /* requests whose completion could not be followed: the request table was full */
    uint64_t folded_cells;         /* cells that were merged into power-of-two cells to make room */
    uint64_t folded_communicators; /* communicators recorded under LEDGER_COMMUNICATOR_OTHER */

    /* What the profiler cost this process. cost_per_call_ps is measured in this process at the end (an estimate of what
     * one counted call adds, in picoseconds); the others are clocked. */
    uint64_t cost_init_ns;
    uint64_t cost_finalize_ns;
    uint64_t cost_per_call_ps;
    int64_t clock_error_ppb; /* how far the clock's scale was off against CLOCK_MONOTONIC over the run; 0 if unknown */

    /* The GPU side. Why it is in this state is the fact "gpu.reason". */
    uint32_t gpu_state;                /* enum ledger_gpu_state */
    uint32_t gpu_epoch;                /* of what is counted of GPUs (activities, devices): it counts if it is the header's */
    uint64_t gpu_records;              /* of GPU activity that were counted */
    uint64_t gpu_dropped_records;      /* lost: by the tracing interface's count, or unread at the end */
    uint64_t gpu_implausible_records;  /* without begin or end, or outside the time in which they can have been */
    uint64_t gpu_late_records;         /* that came when the time they belong to was already summed up: counted, but in no union */
    uint64_t gpu_unkept_records;       /* counted nowhere apart: a table was full */
    uint64_t gpu_lost_intervals;       /* MPI calls that are missing in the unions: too many came between two looks */
    uint64_t gpu_unmatched_operations; /* of NCCL, whose time on the device could not be told */
    uint64_t gpu_place_queries;        /* how often the driver was asked where a buffer lies ... */
    uint64_t gpu_place_changes;        /* ... and how often it answered otherwise than remembered */
    uint64_t cost_gpu_begin_ns;        /* arming the GPU side, on our own thread */
    uint64_t cost_gpu_end_ns;          /* what MPI_Finalize waited for its end */
};

enum ledger_gpu_state {
    LEDGER_GPU_NONE = 0,    /* no GPU was looked for, or none was there */
    LEDGER_GPU_DORMANT = 1, /* there is one, the program has not used it yet */
    LEDGER_GPU_TRACING = 2,
    LEDGER_GPU_PAUSED = 3,  /* between two windows of tracing, or while calls are not counted */
    LEDGER_GPU_YIELDED = 4, /* to another tool that traces the GPU, as long as it does */
    LEDGER_GPU_REFUSED = 5, /* not traced in this process */
    LEDGER_GPU_STOPPED = 6, /* traced until MPI_Finalize */
};

enum ledger_kind {
    LEDGER_CALLS = 1,         /* struct ledger_call */
    LEDGER_FACTS = 2,         /* bytes: struct ledger_fact, key, value, padding to 8; `entry_bytes` is 1 */
    LEDGER_COMMUNICATORS = 3, /* struct ledger_communicator */
    LEDGER_CELLS = 4,         /* struct ledger_cell, all of one thread */
    LEDGER_PEERS = 5,         /* struct ledger_peer, all of one thread */
    LEDGER_THREADS = 6,       /* struct ledger_thread */
    LEDGER_SAMPLES = 7,       /* struct ledger_page */
    LEDGER_REGIONS = 8,       /* struct ledger_region */
    LEDGER_KERNELS = 9,       /* bytes: struct ledger_kernel, name, padding to 8; `entry_bytes` is 1 */
    LEDGER_ACTIVITIES = 10,   /* struct ledger_activity */
    LEDGER_STREAMS = 11,      /* struct ledger_stream */
    LEDGER_DEVICES = 12,      /* struct ledger_device */
    LEDGER_TRACINGS = 13,     /* struct ledger_tracing */
};

struct ledger_chunk {
    uint32_t kind;
    uint32_t entry_bytes;
    uint32_t used;   /* entries in use; grows by one store, after the entry is in place */
    uint32_t thread; /* index of the thread that owns the chunk, where it has one */
    uint8_t reserved[48];
};

/* The name behind a call number. */
struct ledger_call {
    uint32_t call;
    char name[36];   /* "MPI_Allreduce" */
    char family[16]; /* "collective" */
    char library[8]; /* "mpi", "nccl" */
};

/* One line of provenance: "host", "command_line", "env.OMPI_COMM_WORLD_SIZE", "settings.COMMPROF_OUTPUT". Neither key nor
 * value is terminated. A later fact with the same key replaces an earlier one. */
struct ledger_fact {
    uint32_t key_bytes;
    uint32_t value_bytes;
};

enum ledger_communicator_flags {
    LEDGER_COMMUNICATOR_INTER = 1,
    LEDGER_COMMUNICATOR_FREED = 2,
    LEDGER_COMMUNICATOR_NCCL = 4, /* `members` is empty: a rank knows its own number alone */
};

/* All ranks of a communicator begin the same collectives on it in the same order; this is how a reader finds out who has not. */
struct ledger_collective {
    uint64_t bytes; /* as cells have it, LEDGER_BYTES_UNKNOWN where it was not known beforehand */
    uint32_t call;
    int32_t root; /* rank in the communicator; LEDGER_NO_RANK */
};

struct ledger_communicator {
    uint64_t identity;        /* equal on all ranks of the communicator, different for any two (a 64-bit hash) */
    uint64_t parent_identity; /* 0: none */
    uint32_t communicator;    /* the slot that cells name */
    uint32_t flags;
    int32_t size;        /* of the local group */
    int32_t remote_size; /* 0 unless inter-communicator */
    int32_t comm_rank;
    uint32_t constructor;  /* call number of what made it; 0: predefined or not seen */
    uint32_t ordinal;      /* how many alike (same constructor, parent, members) were made before it */
    uint32_t sample_level; /* of its collectives, blocks whose number is a multiple of 2^level have samples */
    char name[128];        /* MPI_Comm_set_name's, else empty */
    char members[328];     /* world ranks in communicator order, "0-3,8,16-30:2"; "..." at the end where it did not fit */
    uint64_t collectives;  /* how many this rank has begun on it; grows by one store, after the entry below is in place */
    struct ledger_collective recent[LEDGER_RECENT_COLLECTIVES]; /* the n-th (from 1) at (n - 1) modulo their number */
};

enum ledger_measure {
    LEDGER_CALL = 0,        /* duration of the call itself */
    LEDGER_COMPLETION = 1,  /* start of a nonblocking operation to the return of the call that completed it */
    LEDGER_POLL = 2,        /* duration of a Test or Iprobe that found nothing */
    LEDGER_DEVICE_TIME = 3, /* of an NCCL operation, or of a group of them: begin to end of its kernels on the device */
    LEDGER_CAPTURED = 4,    /* duration of a call that was captured into a graph: it has moved nothing yet */
};

enum ledger_cell_flags {
    LEDGER_CELL_FOLDED = 1, /* several sizes: more than bytes / 2, up to bytes; and of several regions: it has none */
};

/* Where a buffer lies. A cell's place is (of the buffer that is sent) | (of the one that is received) << 4; a call that has one buffer
 * alone has it twice, a call without any has LEDGER_HOST. */
enum ledger_place {
    LEDGER_HOST = 0,
    LEDGER_DEVICE = 1,
    LEDGER_MANAGED = 2, /* moves between both */
    LEDGER_PINNED = 3,  /* host memory that a GPU can reach */
    LEDGER_PLACES
};
enum { LEDGER_PLACE_TO_BIT = 4 };

/* Log-linear buckets of nanoseconds: bucket 0 below 16 ns, then eight equal buckets in each octave from 2^4 to 2^40 ns,
 * the last one for 2^40 ns (1100 s) and above. A bucket's middle is at most 1/16 away from any value in it. */
enum {
    HISTOGRAM_FIRST_OCTAVE = 4,
    HISTOGRAM_LAST_OCTAVE = 39,
    HISTOGRAM_SUB_BUCKETS = 8,
    HISTOGRAM_BUCKETS = 2 + (HISTOGRAM_LAST_OCTAVE - HISTOGRAM_FIRST_OCTAVE + 1) * HISTOGRAM_SUB_BUCKETS, /* 290 */
};

/* Cells with equal keys (in several threads, or after folding) are one cell to a reader: everything adds up, min and max
 * excepted. A cell's count is the sum of its buckets, so that one store is what makes a call counted. */
struct ledger_cell {
    uint64_t bytes;
    uint16_t call;
    uint16_t communicator;
    uint16_t region;
    uint8_t measure : 4; /* enum ledger_measure: the low four bits */
    uint8_t flags : 4;   /* enum ledger_cell_flags */
    uint8_t place;       /* enum ledger_place, twice */
    uint64_t total_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t volume_bytes;
    uint64_t blocked_ns; /* of a completion: inside Wait and Test */
    uint64_t live;       /* 1: counts; 0: free, or folded away */
    uint64_t buckets[HISTOGRAM_BUCKETS];
    uint64_t reserved[6];
};

enum ledger_direction { LEDGER_SENT = 0, LEDGER_RECEIVED = 1 };

enum {
    LEDGER_PEER_OUTSIDE = -1, /* a process outside this job's MPI_COMM_WORLD (spawned or connected) */
    LEDGER_PEER_ANY = -2,     /* MPI_ANY_SOURCE, of a call that has not returned */
};

enum { LEDGER_PEER_SLOT_BIT = 4 };

struct ledger_peer {
    int32_t peer; /* world rank, or LEDGER_PEER_OUTSIDE; where a communicator is named, rank in it */
    uint16_t call;
    uint16_t direction; /* enum ledger_direction | slot of NCCL's communicator << LEDGER_PEER_SLOT_BIT */
    uint64_t count;
    uint64_t bytes;
    uint64_t time_ns; /* blocking: durations; nonblocking receives: completion times; nonblocking sends: of the call */
};

/* What a thread is doing, packed: the number of the call that it is in, or has left last; the communicator's slot; whether it is inside
 * still; and of a call that waits for requests the call that made the first of them. */
enum { LEDGER_DOING_SLOT_BIT = 16, LEDGER_DOING_INSIDE_BIT = 32, LEDGER_DOING_AWAITED_BIT = 48 };
#define LEDGER_DOING_INSIDE (1ull << LEDGER_DOING_INSIDE_BIT)

struct ledger_thread {
    /* `doing` is stored after the fields that describe it; a reader believes them if it finds the same `doing` before and after. */
    uint64_t doing;
    uint64_t since_ticks;         /* when it went in; when it came out where it is not inside */
    uint64_t bytes;               /* LEDGER_BYTES_UNKNOWN where they were not known beforehand */
    int32_t peer;                 /* world rank, LEDGER_PEER_OUTSIDE, LEDGER_PEER_ANY; LEDGER_NO_RANK where the call has none */
    int32_t tag;                  /* LEDGER_NO_TAG */
    uint64_t sampled_since_ticks; /* before, samples of its calls may be missing in windows that are kept; 0: none is missing */
    uint64_t unused[3];

    uint32_t thread;
    uint32_t is_main; /* 1: the process's first thread */
    int64_t tid;
    uint32_t epoch; /* of its cells and peers: they count if it is the header's */
    uint32_t reserved_too;
    /* Folding cells b and c into a fresh cell a is decided by this one word, a | b << 21 | c << 42, each an index of a cell
     * in the thread's own order plus one. Non-zero: a counts, b and c do not, whatever their `live` says. */
    uint64_t folding;
    char name[16];
    uint8_t reserved[16];
};

/* Single calls, where sums are not enough. All ranks keep the same ones without talking to each other: a call that has a sequence on its
 * communicator is kept or not by that alone (sequence - 1 over LEDGER_BLOCK_SAMPLES, plus 1, is its block), any other by the moment it began (its
 * window: nanoseconds since 1970, counted on from start_unix_ns by the monotonic clock, over 2^LEDGER_WINDOW_NS_LOG2). When the log is
 * full, one level grows by one, so that what is kept is a part of what was; pages that are not kept any longer are used again one by
 * one. A rank whose log filled earlier keeps less: what all ranks have is what the highest level among them says.
 *
 * A page belongs to one owner: a communicator, a thread (calls without a sequence; regions), the process's marked steps, or a GPU's
 * stream (what it did, in windows as of threads, by device_level). */
enum ledger_owner { LEDGER_NOBODY = 0, LEDGER_OF_COMMUNICATOR = 1, LEDGER_OF_THREAD = 2, LEDGER_OF_STEPS = 3, LEDGER_OF_STREAM = 4 };

struct ledger_sample {
    uint64_t start_ticks;
    uint64_t end_ticks;       /* stored last; 0: there is no sample here (yet) */
    uint64_t completed_ticks; /* of a nonblocking collective, when it was seen to be complete; of an NCCL operation the end of its
                                 kernel; 0: not so */
    uint64_t bytes;           /* LEDGER_BYTES_UNKNOWN */
    int32_t peer;             /* as in ledger_thread; of a collective its root's rank in the communicator; LEDGER_NO_RANK */
    uint16_t call;            /* 0: a region, or a step */
    uint16_t communicator;    /* slot */
    uint16_t thread;
    uint16_t region; /* that it was made in; of a region: itself */
    union {
        struct {
            uint16_t awaited;
            uint16_t reserved;
        };
        uint32_t device_span; /* of an NCCL operation with completed_ticks: its kernel's duration, LEDGER_DEVICE_SPAN_* */
    };
};

/* A kernel's duration in 31 bits of 16 ns (34 s and more are the largest); the lowest bit: other operations of its group share the kernel. */
enum { LEDGER_DEVICE_SPAN_SHARED = 1, LEDGER_DEVICE_SPAN_UNIT_NS = 16 };

/* In a stream's page a sample is one activity of the GPU, in the same 48 bytes. */
struct ledger_activity_sample {
    uint64_t start_ticks;
    uint64_t end_ticks; /* as above */
    uint64_t unused;
    uint64_t bytes;  /* of a copy, of a memset; 0 */
    uint32_t kernel; /* 0: it is none */
    uint16_t zero;
    uint16_t communicator; /* slot, of an NCCL kernel that is known to be of one; 0 */
    uint16_t stream;       /* slot */
    uint8_t kind;          /* enum ledger_activity_kind */
    uint8_t copy;          /* enum ledger_copy */
    uint8_t flags;         /* enum ledger_activity_flags */
    uint8_t reserved[3];
};

struct ledger_page {
    uint64_t owner;        /* enum ledger_owner | number (slot, thread) << 8; LEDGER_NOBODY while the page is being changed */
    uint64_t first;        /* sequence (step) of the first sample, less 1; the others follow. Of a thread's page: number of its window */
    uint64_t until_ticks;  /* of a thread's page: from here on calls of that window were not kept, there were too many; 0: all are here */
    uint64_t anchor_ticks; /* these ticks ... */
    int64_t anchor_ns;     /* ... were this moment of CLOCK_MONOTONIC: over a long run better than the header's scale alone */
    uint32_t unfinished;   /* nonblocking collectives in it that are not complete */
    uint32_t is_open;      /* samples are being added */
    uint64_t reserved[2];
    struct ledger_sample samples[LEDGER_PAGE_SAMPLES];
};

/* A part of the program that has a name. Regions may lie in each other: "epoch/forward". */
struct ledger_region {
    uint32_t region; /* from 1; 0 is the program outside all regions */
    uint32_t reserved;
    char name[120];
};

/* What GPUs did. All of it is written by one thread of ours, as the GPU's tracing interface hands it over. */

enum ledger_activity_kind { LEDGER_ACTIVITY_KERNEL = 1, LEDGER_ACTIVITY_COPY = 2, LEDGER_ACTIVITY_SET = 3 };

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
    LEDGER_ACTIVITY_MANAGED = 4,  /* a copy with a side in managed memory */
};

/* A kernel's name, as the GPU's tracing interface gives it (mangled). */
struct ledger_kernel {
    uint32_t kernel; /* from 1; LEDGER_KERNEL_OTHER stands for all that found no room */
    uint32_t name_bytes;
    uint32_t is_communication; /* 1: NCCL's or another library's that moves data between ranks */
    uint32_t reserved;
};
enum { LEDGER_KERNEL_OTHER = UINT16_MAX };

/* What is counted apart: (kind, kernel, copy, flags, size class, stream). Counts as in struct ledger_cell. */
struct ledger_activity {
    uint64_t bytes;  /* of copies and memsets: up to so many, above half of it (a power of two); of kernels 0 */
    uint32_t kernel; /* 0: it is none */
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
    uint32_t stream;  /* slot, from 1; LEDGER_STREAM_OTHER: all that found no room */
    uint32_t device;  /* slot of its device */
    uint32_t context; /* the tracing interface's numbers */
    uint32_t number;
    uint64_t sampled_since_ticks; /* as a thread's */
    uint64_t reserved[5];
};
enum { LEDGER_STREAM_OTHER = 1023 };

/* What a moment of a device is in: a kernel that computes, one that communicates, a copy or memset, and some thread of the process in an
 * MPI call that waits or moves data. */
enum ledger_busy { LEDGER_COMPUTING = 1, LEDGER_COMMUNICATING = 2, LEDGER_COPYING = 4, LEDGER_IN_MPI = 8, LEDGER_BUSY_STATES = 16 };

struct ledger_device {
    uint32_t device; /* slot, from 1 */
    uint32_t number; /* the process's number for it (CUDA's ordinal) */
    char name[64];
    char uuid[48];                         /* "GPU-..."; "": not known */
    uint64_t state_ns[LEDGER_BUSY_STATES]; /* how long it was exactly in these states together; 0 is idle. Their sum is the time that
                                              was traced and summed up. */
    int64_t first_ns, last_ns;             /* begin of the first and end of the last activity, on the monotonic clock; 0: none */
    uint64_t kernels, copies, sets;        /* how many */
    uint64_t reserved[4];
};

/* A time in which the GPUs were traced. */
enum ledger_tracing_end {
    LEDGER_TRACING_GOES_ON = 0,
    LEDGER_TRACING_DUTY = 1,    /* the window was over */
    LEDGER_TRACING_YIELDED = 2, /* another tool took over */
    LEDGER_TRACING_OFF = 3,     /* calls are not counted (MPI_Pcontrol, a time window) */
    LEDGER_TRACING_STOPPED = 4, /* end of the job */
    LEDGER_TRACING_LOST = 5,    /* records have stopped to come */
};

struct ledger_tracing {
    int64_t begin_ns, end_ns; /* on the monotonic clock; end 0: goes on */
    uint32_t ended;           /* enum ledger_tracing_end */
    uint32_t clock_error_ns;  /* how far the GPU's time stamps may be off, at most, as read on the host; UINT32_MAX: not known */
    uint64_t records;
    uint64_t reserved[4];
};

_Static_assert(sizeof(struct ledger_sample) == 48, "sample");
_Static_assert(sizeof(struct ledger_activity_sample) == 48, "activity sample");
_Static_assert(sizeof(struct ledger_activity) == 2432, "activity: whole cache lines");
_Static_assert(sizeof(struct ledger_stream) == 64, "stream");
_Static_assert(sizeof(struct ledger_device) == 320, "device");
_Static_assert(sizeof(struct ledger_tracing) == 64, "tracing");
_Static_assert(sizeof(struct ledger_page) == 3136, "page");
_Static_assert(sizeof(struct ledger_region) == 128, "region");
_Static_assert(sizeof(struct ledger_header) <= LEDGER_HEADER_BYTES, "the header fits its page");
_Static_assert(sizeof(struct ledger_chunk) == LEDGER_CHUNK_HEADER_BYTES, "chunk header");
_Static_assert(sizeof(struct ledger_call) == 64, "call");
_Static_assert(sizeof(struct ledger_communicator) == 768, "communicator");
_Static_assert(sizeof(struct ledger_cell) == 2432, "cell: whole cache lines");
_Static_assert(sizeof(struct ledger_peer) == 32, "peer");
_Static_assert(sizeof(struct ledger_thread) == 128, "thread: what it is doing has a cache line of its own");

#endif
