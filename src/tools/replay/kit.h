/* A kit in memory: the traffic of a job, as `hvprof-report replay kit` has written it
 * (kit.def; report/commprof_report/replay/kit.py says what it means). Kits come from anybody: every
 * number that stands for a row, a rank or a request is checked. */
#ifndef COMMPROF_KIT_H
#define COMMPROF_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIT_VERSION = 1, KIT_NONE = INT32_MIN, KIT_NAME_BYTES = 40 };

enum kit_how { KIT_WORLD, KIT_SELF, KIT_DUP, KIT_SPLIT, KIT_UNKNOWN };

struct kit_comm {
    enum kit_how how;
    int parent, round, size;
    int *members; /* world ranks */
};

struct kit_type {
    char name[KIT_NAME_BYTES];
    int64_t bytes, extent, blocks;
};

struct kit_vector {
    int length;
    int *counts, *places; /* one part behind the other */
};

/* The arguments of a call; KIT_NONE: it has none. */
struct kit_call {
    char name[KIT_NAME_BYTES], op[KIT_NAME_BYTES];
    int comm, type, root, peer, tag, in_place, vector;
    int64_t count;
    int received_type, received_peer, received_tag, received_vector;
    int64_t received_count;
    int64_t buffer_at, received_at; /* in the thread's memory */
    int64_t pause_ns;               /* between polls that find nothing */
};

/* A call of a program. Kits have millions of them. */
struct kit_made {
    int64_t gap_ns;
    unsigned call : 31, is_asleep : 1; /* in the gap the job slept, rather than computed */
    uint32_t first_request;            /* of kit->requests, up to the first of the next call */
};

static inline int kit_requests(const struct kit_made *made)
{
    return (int)(made[1].first_request - made->first_request);
}

struct kit_program {
    int rank, thread;
    size_t first, count; /* of kit->made */
    int line;            /* of the kit, on which the first of them stands */
    size_t before;       /* the first of them, which set up persistent requests, are not counted */
    int requests;        /* as many are open at most */
};

struct kit {
    char sha256[65];
    bool has_threads;           /* some rank has more than one */
    int64_t window_ns, gaps_ns; /* the longest that a program of any rank computes */
    int ranks, comms, types, vectors, calls, programs;
    struct kit_comm *comm;
    struct kit_type *type;
    struct kit_vector *vector;
    struct kit_call *call;
    struct kit_program *program; /* of one rank */
    struct kit_made *made;       /* one more stands behind them */
    int *requests;
    size_t made_count, request_count;
};

/* In a communicator. */
static inline int kit_ranks(const struct kit *kit, int comm)
{
    return comm == KIT_NONE ? 0 : comm == KIT_SELF ? 1 : kit->comm[comm].size;
}

/* The text of the kit in a program that `hvprof-report replay source` has written, NULL in
 * commprof-replay, which reads a file. */
extern const char kit_inside[] __attribute__((weak));

/* Reads the kit, and of the programs those of one rank (none: -1). Fails with a message of what is
 * wrong in `why`. */
bool kit_read(struct kit *kit, const char *path, int rank, char *why, size_t why_bytes);

#endif
