#include "player.h"

#include "race.h"
#include "watch.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define ROOM_MOST ((int64_t)1 << 40) /* bytes of a buffer */

enum shape {
    BARRIER,
    BCAST,
    GATHER,
    SCATTER,
    GATHERV,
    SCATTERV,
    ALLGATHER, /* and alltoall */
    ALLGATHERV,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE, /* and scans */
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SEND,
    RECV,
    SENDRECV,
    PROBE,
    IPROBE,
    MPROBE,
    IMPROBE,
    MRECV,
    IMRECV,
    START,
    STARTALL,
    REQUEST_FREE,
    WAIT,
    WAITALL,
    WAITANY,
    WAITSOME,
    TEST,
    TESTALL,
    TESTANY,
    TESTSOME,
};

/* The arguments without which a call cannot be made. */
enum needs { COMM = 1, ROOT = 2, COUNTS = 4, RECEIVED_COUNTS = 8, TAG = 16 };

static const struct shaped {
    const char *name;
    enum shape shape;
    unsigned needs;
} SHAPES[] = {
    {"barrier", BARRIER, COMM},
    {"bcast", BCAST, COMM | ROOT},
    {"gather", GATHER, COMM | ROOT},
    {"scatter", SCATTER, COMM | ROOT},
    {"gatherv", GATHERV, COMM | ROOT | COUNTS},
    {"scatterv", SCATTERV, COMM | ROOT | COUNTS},
    {"allgather", ALLGATHER, COMM},
    {"alltoall", ALLGATHER, COMM},
    {"allgatherv", ALLGATHERV, COMM | COUNTS},
    {"alltoallv", ALLTOALLV, COMM | COUNTS | RECEIVED_COUNTS},
    {"alltoallw", ALLTOALLW, COMM | COUNTS | RECEIVED_COUNTS},
    {"reduce", REDUCE, COMM | ROOT},
    {"allreduce", ALLREDUCE, COMM},
    {"scan", ALLREDUCE, COMM},
    {"exscan", ALLREDUCE, COMM},
    {"reduce_scatter", REDUCE_SCATTER, COMM | COUNTS},
    {"reduce_scatter_block", REDUCE_SCATTER_BLOCK, COMM},
    {"send", SEND, COMM | TAG},
    {"ssend", SEND, COMM | TAG},
    {"rsend", SEND, COMM | TAG},
    {"recv", RECV, COMM | TAG},
    {"sendrecv", SENDRECV, COMM | TAG},
    {"probe", PROBE, COMM | TAG},
    {"iprobe", IPROBE, COMM | TAG},
    {"mprobe", MPROBE, COMM | TAG},
    {"improbe", IMPROBE, COMM | TAG},
    {"mrecv", MRECV, 0},
    {"imrecv", IMRECV, 0},
    {"start", START, 0},
    {"startall", STARTALL, 0},
    {"request_free", REQUEST_FREE, 0},
    {"wait", WAIT, 0},
    {"waitall", WAITALL, 0},
    {"waitany", WAITANY, 0},
    {"waitsome", WAITSOME, 0},
    {"test", TEST, 0},
    {"testall", TESTALL, 0},
    {"testany", TESTANY, 0},
    {"testsome", TESTSOME, 0},
};

/* The function behind each call of the kit. */
static struct function {
    void *address;
    enum shape shape;
    unsigned needs;
    bool starts;  /* returns a request */
    bool sets_up; /* returns a persistent one */
    int64_t room; /* bytes that it may touch in each of its buffers */
} * functions;

/* NULL: there is none with this name. Behind MPI_I it is written in lower case. */
static const struct shaped *shape_of(const char *name, size_t bytes, bool is_lower)
{
    for (size_t i = 0; bytes && i < sizeof SHAPES / sizeof *SHAPES; i++) {
        const char *shape = SHAPES[i].name;
        int first = is_lower ? *shape : toupper((unsigned char)*shape);
        if (strlen(shape) == bytes && *name == first &&
            strncmp(name + 1, shape + 1, bytes - 1) == 0)
            return &SHAPES[i];
    }
    return NULL;
}

/* MPI_Iprobe is in the table, MPI_Isend a Send that starts. */
static const struct shaped *shape_of_call(const char *name, size_t bytes, bool *is_immediate)
{
    const struct shaped *shaped = shape_of(name, bytes, false);
    *is_immediate = !shaped && *name == 'I';
    return *is_immediate ? shape_of(name + 1, bytes - 1, true) : shaped;
}

static bool find(struct function *function, const char *call)
{
    const char *name = call + strlen("MPI_"), *suffix = strstr(call, "_init");
    if (strncmp(call, "MPI_", 4) != 0 || (suffix && strcmp(suffix, "_init") != 0))
        return false;
    bool is_immediate;
    const struct shaped *shaped =
        shape_of_call(name, suffix ? (size_t)(suffix - name) : strlen(name), &is_immediate);
    function->address = library_function(call);
    function->sets_up = suffix;
    if (!function->address || !shaped || (suffix && is_immediate))
        return false;
    function->shape = shaped->shape;
    function->needs = shaped->needs;
    bool returns = is_immediate || suffix; /* a request, of what it begins or sets up */
    function->starts = returns || shaped->shape == IMRECV;
    return !returns || shaped->shape < SENDRECV;
}

static bool has_arguments(const struct kit_call *call, unsigned needs)
{
    return !((needs & COMM && call->comm == KIT_NONE) || (needs & ROOT && call->root == KIT_NONE) ||
             (needs & COUNTS && call->vector == KIT_NONE) ||
             (needs & RECEIVED_COUNTS && call->received_vector == KIT_NONE) ||
             (needs & TAG && call->tag == KIT_NONE));
}

/* States of a request, and the calls that change them but for those that start or complete it. */
enum request_state { NONE, OPEN, INACTIVE, ACTIVE, MATCHED };

static const struct {
    enum shape shape;
    enum request_state from, to;
} CHANGES[] = {
    {MPROBE, NONE, MATCHED},        {IMPROBE, NONE, MATCHED},  {MRECV, MATCHED, NONE},
    {IMRECV, MATCHED, OPEN},        {START, INACTIVE, ACTIVE}, {STARTALL, INACTIVE, ACTIVE},
    {REQUEST_FREE, INACTIVE, NONE},
};

/* The state of a request after a call; -1: the call cannot have it in this one. */
static int state_after(const struct function *function, int state)
{
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++)
        if (CHANGES[i].shape == function->shape)
            return (int)CHANGES[i].from == state ? (int)CHANGES[i].to : -1;
    if (function->shape >= WAIT)
        return state == OPEN ? NONE : state == ACTIVE ? INACTIVE : -1;
    return state != NONE ? -1 : function->sets_up ? INACTIVE : OPEN;
}

/* Whether a call finds its requests as it needs them; it changes their states. */
static bool changes_requests(const struct kit *kit, const struct kit_made *made, char *states)
{
    const struct function *function = &functions[made->call];
    enum shape shape = function->shape;
    bool has_one = function->starts || (shape >= MPROBE && shape <= MRECV) || shape == START ||
                   shape == REQUEST_FREE;
    int count = kit_requests(made);
    if (has_one ? count != 1 : (shape >= START) != (count > 0))
        return false;
    for (int i = 0; i < count; i++) {
        char *at = &states[kit->requests[made->first_request + (size_t)i]];
        int after = state_after(function, *at);
        if (after < 0)
            return false;
        *at = (char)after;
    }
    return true;
}

/* Each call finds its requests as it needs them, and all messages that are found are received. */
static bool has_requests(const struct kit *kit, const struct kit_program *program)
{
    char *states = calloc((size_t)program->requests + 1, 1);
    bool is_right = states && program->before <= program->count;
    for (size_t i = 0; is_right && i < program->count; i++) {
        const struct kit_made *made = &kit->made[program->first + i];
        is_right = (i >= program->before || functions[made->call].sets_up) &&
                   changes_requests(kit, made, states);
    }
    is_right = is_right && !memchr(states, MATCHED, (size_t)program->requests + 1);
    free(states);
    return is_right;
}

static int64_t span_of(const struct kit *kit, int type, int64_t count)
{
    int64_t bytes = type == KIT_NONE ? 1 : kit->type[type].bytes;
    int64_t extent = type == KIT_NONE ? 1 : llabs(kit->type[type].extent);
    return count == KIT_NONE ? 0 : count * extent + bytes;
}

static bool add(int64_t *sum, int64_t part, int64_t times)
{
    int64_t product;
    return !__builtin_mul_overflow(part, times, &product) &&
           !__builtin_add_overflow(*sum, product, sum) && *sum <= ROOM_MOST;
}

static bool add_vector(int64_t *sum, const struct kit *kit, int type, int number)
{
    const struct kit_vector *vector = &kit->vector[number == KIT_NONE ? 0 : number];
    for (int i = 0; number != KIT_NONE && i < vector->length; i++)
        if (!add(sum, span_of(kit, type, vector->counts[i]), 1))
            return false;
    return true;
}

/* Bytes that the call may touch on either side; -1: more than any memory has. */
static int64_t room_of(const struct kit *kit, const struct kit_call *call, enum shape shape)
{
    int type = shape == ALLTOALLW ? KIT_NONE : call->type;
    int64_t all = 0, received = span_of(kit, call->received_type, call->received_count);
    bool is_per_rank =
        shape == GATHER || shape == SCATTER || shape == ALLGATHER || shape == REDUCE_SCATTER_BLOCK;
    int ranks = is_per_rank ? kit_ranks(kit, call->comm) : 1;
    if (!add(&all, span_of(kit, type, call->count), ranks) ||
        !add_vector(&all, kit, type, call->vector) ||
        !add_vector(&all, kit, type, call->received_vector) || received > ROOM_MOST)
        return -1;
    return all > received ? all : received;
}

bool player_begin(const struct kit *kit, char *why, size_t why_bytes)
{
    functions = calloc((size_t)kit->calls + 1, sizeof *functions);
    for (int i = 0; functions && i < kit->calls; i++) {
        const char *wrong =
            !find(&functions[i], kit->call[i].name)
                ? functions[i].address ? "no replay can make" : "the library has no"
            : !has_arguments(&kit->call[i], functions[i].needs) ? "the kit lacks arguments of"
            : (functions[i].room = room_of(kit, &kit->call[i], functions[i].shape)) < 0
                ? "no memory has room for a message of"
                : NULL;
        if (wrong) {
            snprintf(why, why_bytes, "%s %s", wrong, kit->call[i].name);
            return false;
        }
    }
    return functions;
}

bool player_begin_programs(const struct kit *kit, char *why, size_t why_bytes)
{
    for (int i = 0; i < kit->programs; i++)
        if (!has_requests(kit, &kit->program[i])) {
            snprintf(why, why_bytes, "its requests are not in order");
            return false;
        }
    return true;
}

/* A thread's requests, and buffers for what each may move; the last is for blocking calls. */
struct player {
    struct players *all;
    const struct kit *kit;
    const struct objects *objects;
    const struct player_settings *settings;
    const struct kit_program *program;
    uint64_t *requests; /* handles in memory, one in each place; also of messages */
    struct pair {
        char *sent, *received;
    } * buffers;
    char *memory;       /* buffers that the job used again and again; begins a page */
    struct work work;   /* of its computing */
    uint64_t *together; /* requests as an array in the library's layout */
    int *indices;       /* of requests */
    int *set_up;        /* the call that set a persistent request up */
    struct watched *watched;
};

/* Common to all threads of this rank. */
struct players {
    struct player *player;
    pthread_barrier_t are_prepared;
    int64_t begin_ns;
};

/* All its buffers are in the thread's memory. */
static bool is_placed(const struct kit_call *call, enum shape shape)
{
    bool has_one =
        shape == BCAST || shape == SEND || shape == RECV || shape == MRECV || shape == IMRECV;
    return call->buffer_at != KIT_NONE && (has_one || call->received_at != KIT_NONE);
}

/* Bytes of the thread's memory up to the end of the call's buffers. */
static int64_t end_of_memory(const struct kit_call *call, int64_t room)
{
    int64_t last = call->buffer_at > call->received_at ? call->buffer_at : call->received_at;
    return last == KIT_NONE ? 0 : last + room;
}

static void *zeroed(int count, size_t bytes)
{
    void *rows = calloc((size_t)count, bytes);
    if (!rows)
        abort();
    return rows;
}

/* Memory is touched by the thread that uses it. */
static void prepare(struct player *player)
{
    const struct kit *kit = player->kit;
    const struct kit_program *program = player->program;
    int blocking = program->requests, most = program->requests + 1;
    int64_t *room = zeroed(most, sizeof *room), memory = 0; /* bytes of the buffers */
    player->requests = zeroed(most, sizeof *player->requests);
    player->together = zeroed(most, sizeof *player->together);
    player->indices = zeroed(most, sizeof *player->indices);
    player->set_up = zeroed(most, sizeof *player->set_up);
    player->buffers = zeroed(most, sizeof *player->buffers);
    for (size_t i = 0; i < program->count; i++) {
        const struct kit_made *made = &kit->made[program->first + i];
        const struct function *function = &functions[made->call];
        int at = function->starts ? kit->requests[made->first_request] : blocking;
        const struct kit_call *call = &kit->call[made->call];
        int64_t end = end_of_memory(call, function->room);
        if (function->room > room[at] && !is_placed(call, function->shape))
            room[at] = function->room;
        memory = end > memory ? end : memory;
    }
    player->memory = memory ? buffers_filled(memory, PAGE_BYTES) : NULL;
    player->work.bytes = buffers_filled(WORK_BYTES, PAGE_BYTES);
    for (int i = 0; i < most; i++) {
        mpi_handle_store(&player->requests[i], mpi_abi.request_null);
        player->buffers[i] =
            (struct pair){buffers_filled(room[i], LINE_BYTES), buffers_filled(room[i], LINE_BYTES)};
    }
    free(room);
}

static void release(struct player *player)
{
    for (int i = 0; i <= player->program->requests; i++) {
        free(player->buffers[i].sent);
        free(player->buffers[i].received);
    }
    free(player->requests);
    free(player->together);
    free(player->indices);
    free(player->set_up);
    free(player->buffers);
    free(player->memory);
    free(player->work.bytes);
}

/* Calls a function, with a request behind its arguments if it returns one; and before that an info
 * if it sets a collective up. */
#define ARGUMENTS(...) __VA_ARGS__
#define MAKE(TYPES, VALUES)                                                                     \
    (function->sets_up && function->shape < SEND                                                \
         ? ((int (*)(TYPES, mpi_handle, void *))function->address)(VALUES, empty_info, request) \
     : function->starts ? ((int (*)(TYPES, void *))function->address)(VALUES, request)          \
                        : ((int (*)(TYPES))function->address)(VALUES))

static mpi_handle empty_info;

/* Arguments of a function. In place, `sent` says so, and `root_received` of a scatter's root;
 * `own` is the buffer that it sends all the same. */
struct arguments {
    const struct kit_call *call;
    const struct objects *objects;
    mpi_handle comm, type;
    int count, peer;
    const struct kit_vector *vector, *received_vector;
    void *own, *sent, *received, *root_received, *request;
};

static mpi_handle type_of(const struct objects *objects, int type)
{
    return type == KIT_NONE ? mpi_abi.byte : mpi_handle_load(&objects->type[type], 0);
}

static int peer_of(int peer)
{
    return peer == KIT_NONE ? mpi_abi.proc_null : peer;
}

static int count_of(int64_t count)
{
    return count == KIT_NONE ? 0 : (int)count;
}

static const struct kit_vector *vector_of(const struct kit *kit, int vector)
{
    static const struct kit_vector NOTHING = {0};
    return vector == KIT_NONE ? &NOTHING : &kit->vector[vector];
}

static mpi_handle op_of(const struct arguments *with)
{
    return objects_op(with->objects, with->call->op, with->call->type);
}

typedef mpi_handle H;

static int move_rooted(const struct function *function, const struct arguments *with)
{
    void *request = with->request;
    switch (function->shape) {
    case BCAST:
        return MAKE(
            ARGUMENTS(void *, int, H, int, H),
            ARGUMENTS(with->received, with->count, with->type, with->call->root, with->comm));
    case GATHER:
        return MAKE(ARGUMENTS(void *, int, H, void *, int, H, int, H),
                    ARGUMENTS(with->sent, with->count, with->type, with->received, with->count,
                              with->type, with->call->root, with->comm));
    case SCATTER: /* in place is what the root receives */
        return MAKE(ARGUMENTS(void *, int, H, void *, int, H, int, H),
                    ARGUMENTS(with->own, with->count, with->type, with->root_received, with->count,
                              with->type, with->call->root, with->comm));
    case GATHERV:
        return MAKE(ARGUMENTS(void *, int, H, void *, int *, int *, H, int, H),
                    ARGUMENTS(with->sent, with->count, with->type, with->received,
                              with->vector->counts, with->vector->places, with->type,
                              with->call->root, with->comm));
    case SCATTERV:
        return MAKE(ARGUMENTS(void *, int *, int *, H, void *, int, H, int, H),
                    ARGUMENTS(with->own, with->vector->counts, with->vector->places, with->type,
                              with->root_received, with->count, with->type, with->call->root,
                              with->comm));
    default: /* REDUCE */
        return MAKE(ARGUMENTS(void *, void *, int, H, H, int, H),
                    ARGUMENTS(with->sent, with->received, with->count, with->type, op_of(with),
                              with->call->root, with->comm));
    }
}

static int move_all(const struct function *function, const struct arguments *with)
{
    void *request = with->request, *bytes = with->objects->bytes;
    switch (function->shape) {
    case BARRIER:
        return MAKE(ARGUMENTS(H), with->comm);
    case ALLGATHER:
        return MAKE(ARGUMENTS(void *, int, H, void *, int, H, H),
                    ARGUMENTS(with->sent, with->count, with->type, with->received, with->count,
                              with->type, with->comm));
    case ALLGATHERV:
        return MAKE(ARGUMENTS(void *, int, H, void *, int *, int *, H, H),
                    ARGUMENTS(with->sent, with->count, with->type, with->received,
                              with->vector->counts, with->vector->places, with->type, with->comm));
    case ALLTOALLV:
        return MAKE(ARGUMENTS(void *, int *, int *, H, void *, int *, int *, H, H),
                    ARGUMENTS(with->sent, with->vector->counts, with->vector->places, with->type,
                              with->received, with->received_vector->counts,
                              with->received_vector->places, with->type, with->comm));
    case ALLTOALLW:
        return MAKE(ARGUMENTS(void *, int *, int *, void *, void *, int *, int *, void *, H),
                    ARGUMENTS(with->sent, with->vector->counts, with->vector->places, bytes,
                              with->received, with->received_vector->counts,
                              with->received_vector->places, bytes, with->comm));
    case REDUCE_SCATTER:
        return MAKE(ARGUMENTS(void *, void *, int *, H, H, H),
                    ARGUMENTS(with->sent, with->received, with->vector->counts, with->type,
                              op_of(with), with->comm));
    default: /* ALLREDUCE, REDUCE_SCATTER_BLOCK */
        return MAKE(ARGUMENTS(void *, void *, int, H, H, H),
                    ARGUMENTS(with->sent, with->received, with->count, with->type, op_of(with),
                              with->comm));
    }
}

static int exchange(const struct function *function, const struct arguments *with)
{
    const struct kit_call *call = with->call;
    return (
        (int (*)(void *, int, H, int, int, void *, int, H, int, int, H, void *))function->address)(
        with->own, with->count, with->type, with->peer, call->tag, with->received,
        count_of(call->received_count), type_of(with->objects, call->received_type),
        peer_of(call->received_peer), count_of(call->received_tag), with->comm,
        mpi_abi.status_ignore);
}

static int move_message(const struct function *function, const struct arguments *with)
{
    void *request = with->request, *ignore = mpi_abi.status_ignore;
    uint64_t message = 0;
    switch (function->shape) {
    case SEND:
        return MAKE(
            ARGUMENTS(void *, int, H, int, int, H),
            ARGUMENTS(with->own, with->count, with->type, with->peer, with->call->tag, with->comm));
    case RECV:
        if (function->starts)
            return MAKE(ARGUMENTS(void *, int, H, int, int, H),
                        ARGUMENTS(with->received, with->count, with->type, with->peer,
                                  with->call->tag, with->comm));
        return ((int (*)(void *, int, H, int, int, H, void *))function->address)(
            with->received, with->count, with->type, with->peer, with->call->tag, with->comm,
            ignore);
    case MRECV:
        return ((int (*)(void *, int, H, void *, void *))function->address)(
            with->received, with->count, with->type, request, ignore);
    case IMRECV:
        mpi_handle_store(&message, mpi_handle_load(request, 0));
        return ((int (*)(void *, int, H, void *, void *))function->address)(
            with->received, with->count, with->type, &message, request);
    default: /* SENDRECV */
        return exchange(function, with);
    }
}

static int move(const struct player *player, const struct function *function,
                const struct kit_call *call, struct pair buffers, void *request)
{
    const struct objects *objects = player->objects;
    bool is_in_place = call->in_place == 1;
    const struct arguments with = {
        .call = call,
        .objects = objects,
        .comm = mpi_handle_load(&objects->comm[call->comm], 0),
        .type = type_of(objects, call->type),
        .count = count_of(call->count),
        .peer = peer_of(call->peer),
        .vector = vector_of(player->kit, call->vector),
        .received_vector = vector_of(player->kit, call->received_vector),
        .own = buffers.sent,
        .sent = is_in_place ? mpi_abi.in_place : buffers.sent,
        .received = buffers.received,
        .root_received = is_in_place ? mpi_abi.in_place : buffers.received,
        .request = request,
    };
    return function->needs & ROOT   ? move_rooted(function, &with)
           : function->shape < SEND ? move_all(function, &with)
                                    : move_message(function, &with);
}

/* A thread wakes up late, mostly by less than WAKING_NS, which it spends on its core. */
static void pass_time(struct player *player, int64_t until_ns, bool is_asleep)
{
    enum { WAKING_NS = 100000, NS = 1000000000 };
    int64_t wake_ns = until_ns - WAKING_NS;
    struct timespec wake = {.tv_sec = wake_ns / NS, .tv_nsec = wake_ns % NS};
    if (is_asleep && wake_ns > arrival_now_ns()) {
        prctl(PR_SET_TIMERSLACK, 1); /* ns; by default the kernel wakes it up to 50 us later */
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
        prctl(PR_SET_TIMERSLACK, 0); /* the default again, for the library's own sleep */
    }
    while (arrival_now_ns() < until_ns)
        if (!is_asleep)
            buffers_work(&player->work);
}

/* Between polls that find nothing, as long as the job did something else. */
static void pause_after(struct player *player, const struct kit_call *call, bool is_found)
{
    if (!is_found && player->settings->has_gaps && call->pause_ns != KIT_NONE)
        pass_time(player, arrival_now_ns() + call->pause_ns, false);
}

/* Probes for a message that is there, or comes. */
static void look(struct player *player, const struct function *function,
                 const struct kit_call *call, void *message)
{
    H comm = mpi_handle_load(&player->objects->comm[call->comm], 0);
    void *address = function->address, *ignore = mpi_abi.status_ignore;
    int peer = peer_of(call->peer), tag = call->tag, flag = 0;
    if (function->shape == PROBE)
        ((int (*)(int, int, H, void *))address)(peer, tag, comm, ignore);
    else if (function->shape == MPROBE)
        ((int (*)(int, int, H, void *, void *))address)(peer, tag, comm, message, ignore);
    else if (function->shape == IPROBE)
        for (; !flag; pause_after(player, call, flag))
            ((int (*)(int, int, H, int *, void *))address)(peer, tag, comm, &flag, ignore);
    else
        for (; !flag; pause_after(player, call, flag))
            ((int (*)(int, int, H, int *, void *, void *))address)(peer, tag, comm, &flag, message,
                                                                   ignore);
}

/* The requests of a call as an array, and back: the library has changed them. */
static void gather(struct player *player, const int *which, int count)
{
    for (int i = 0; i < count; i++)
        memcpy((char *)player->together + (size_t)i * mpi_abi.handle_bytes,
               &player->requests[which[i]], mpi_abi.handle_bytes);
}

static void scatter(struct player *player, const int *which, int count)
{
    for (int i = 0; i < count; i++)
        mpi_handle_store(&player->requests[which[i]], mpi_handle_load(player->together, (size_t)i));
}

/* Waits for, or tests `count` requests; returns how many of `left` are open then. */
static int left_after(struct player *player, const struct function *function, int count, int left)
{
    void *address = function->address, *ignore = mpi_abi.status_ignore;
    void *requests = player->together;
    int flag = 1, done = 0;
    switch (function->shape) {
    case WAIT:
        ((int (*)(void *, void *))address)(requests, ignore);
        return 0;
    case WAITALL:
        ((int (*)(int, void *, void *))address)(count, requests, ignore);
        return 0;
    case TEST:
        ((int (*)(void *, int *, void *))address)(requests, &flag, ignore);
        return !flag;
    case TESTALL:
        ((int (*)(int, void *, int *, void *))address)(count, requests, &flag, ignore);
        return !flag;
    case WAITANY:
        ((int (*)(int, void *, int *, void *))address)(count, requests, &done, ignore);
        return done == MPI_UNDEFINED ? 0 : left - 1;
    case TESTANY:
        ((int (*)(int, void *, int *, int *, void *))address)(count, requests, &done, &flag,
                                                              ignore);
        return !flag ? left : done == MPI_UNDEFINED ? 0 : left - 1;
    default: /* WAITSOME, TESTSOME */
        ((int (*)(int, void *, int *, int *, void *))address)(count, requests, &done,
                                                              player->indices, ignore);
        return done == MPI_UNDEFINED ? 0 : left - done;
    }
}

/* Polls as often as it takes, and makes those that complete one or some until all are. */
static void complete(struct player *player, const struct kit_made *made)
{
    const struct function *function = &functions[made->call];
    int count = kit_requests(made);
    for (int left = count; left > 0;) {
        int before = left;
        left = left_after(player, function, count, left);
        if (function->shape != WAIT && function->shape != WAITALL)
            pause_after(player, &player->kit->call[made->call], left < before);
    }
}

/* A call that starts, frees or completes requests. */
static void handle(struct player *player, const struct function *function,
                   const struct kit_made *made)
{
    const int *which = &player->kit->requests[made->first_request];
    gather(player, which, kit_requests(made));
    if (function->shape == STARTALL)
        ((int (*)(int, void *))function->address)(kit_requests(made), player->together);
    else if (function->shape < WAIT)
        ((int (*)(void *))function->address)(player->together);
    else
        complete(player, made);
    scatter(player, which, kit_requests(made));
}

/* A call with one buffer has it at `buffer_at`, whether it sends it or not. */
static struct pair buffers_of(const struct player *player, int number, int own)
{
    const struct kit_call *call = &player->kit->call[number];
    struct pair pair = player->buffers[own];
    if (call->buffer_at != KIT_NONE)
        pair.sent = player->memory + call->buffer_at;
    if (call->received_at != KIT_NONE)
        pair.received = player->memory + call->received_at;
    else if (is_placed(call, functions[number].shape))
        pair.received = pair.sent;
    return pair;
}

static void settle(const struct player *player, const struct kit_made *made)
{
    const struct function *function = &functions[made->call];
    bool restarts = function->shape == START || function->shape == STARTALL;
    const int *which = &player->kit->requests[made->first_request];
    for (int i = 0; i < (restarts ? kit_requests(made) : 1); i++) {
        int at = restarts || function->starts ? which[i] : player->program->requests;
        int call = restarts ? player->set_up[at] : made->call;
        struct pair pair = buffers_of(player, call, at);
        buffers_settle(player->settings->buffers, pair.sent, functions[call].room);
        buffers_settle(player->settings->buffers, pair.received, functions[call].room);
    }
}

static void make(struct player *player, const struct kit_made *made)
{
    const struct player_settings *settings = player->settings;
    const struct kit_call *call = &player->kit->call[made->call];
    const struct function *function = &functions[made->call];
    int blocking = player->program->requests;
    int request = kit_requests(made) ? player->kit->requests[made->first_request] : blocking;
    watch_enter(player->watched, made);
    if (function->shape >= START)
        handle(player, function, made);
    else if (function->shape >= PROBE && function->shape <= IMPROBE)
        look(player, function, call, &player->requests[request]);
    else {
        if (function->shape < SEND && !function->starts)
            arrival_wait(settings->arrival, mpi_handle_load(&player->objects->comm[call->comm], 0),
                         settings->is_counted);
        if (!function->starts)
            race_enter((int)made->call);
        int error = move(player, function, call,
                         buffers_of(player, made->call, function->starts ? request : blocking),
                         &player->requests[request]);
        if (!function->starts)
            race_leave(error);
        if (function->sets_up)
            player->set_up[request] = made->call;
    }
    if (function->shape == MRECV)
        mpi_handle_store(&player->requests[request], mpi_abi.request_null);
    watch_leave(player->watched);
}

static void play(struct player *player)
{
    const struct kit_program *program = player->program;
    int64_t before_ns = arrival_now_ns();
    for (size_t i = program->before; i < program->count; i++) {
        const struct kit_made *made = &player->kit->made[program->first + i];
        if (player->settings->buffers)
            settle(player, made);
        if (player->settings->has_gaps)
            pass_time(player, before_ns + made->gap_ns, made->is_asleep);
        make(player, made);
        before_ns = arrival_now_ns();
    }
}

static int (*level)(int, ...);

static void make_info(void)
{
    int (*create)(void *) = (int (*)(void *))library_function("MPI_Info_create");
    uint64_t info = 0;
    create(&info);
    empty_info = mpi_handle_load(&info, 0);
}

/* The first thread sets up what all need, while they wait. */
static void *perform(void *context)
{
    struct player *player = context;
    struct players *all = player->all;
    prepare(player);
    pthread_barrier_wait(&all->are_prepared);
    if (player == all->player) {
        for (int i = 0; i < player->kit->programs; i++)
            for (size_t j = 0; j < all->player[i].program->before; j++)
                make(&all->player[i], &player->kit->made[all->player[i].program->first + j]);
        watch_own(player->watched, "MPI_Barrier before its calls", KIT_NONE);
        ((int (*)(mpi_handle))library_function("MPI_Barrier"))(mpi_abi.comm_world);
        watch_own_end(player->watched);
        level(player->settings->is_counted);
        all->begin_ns = arrival_now_ns();
    }
    pthread_barrier_wait(&all->are_prepared);
    play(player);
    return NULL;
}

/* Completes, and then frees, all that the kit does not; uncounted. */
static void finish(struct player *player)
{
    int (*wait)(void *, void *) = (int (*)(void *, void *))library_function("MPI_Wait");
    int (*free_)(void *) = (int (*)(void *))library_function("MPI_Request_free");
    for (int i = 0; i < player->program->requests; i++) {
        watch_own(player->watched, WATCH_WAIT, i);
        wait(&player->requests[i], mpi_abi.status_ignore);
        watch_own_end(player->watched);
        if (mpi_handle_bits(mpi_handle_load(&player->requests[i], 0)) != mpi_abi.request_null)
            free_(&player->requests[i]);
    }
}

int64_t player_play(const struct kit *kit, const struct objects *objects,
                    const struct player_settings *settings)
{
    /* a rank without a program waits for the others as well */
    static const struct kit_program NOTHING;
    int programs = kit->programs ? kit->programs : 1;
    struct players all = {.player = calloc((size_t)programs, sizeof *all.player)};
    pthread_t *threads = calloc((size_t)programs, sizeof *threads);
    level = (int (*)(int, ...))library_function("MPI_Pcontrol");
    if (!empty_info)
        make_info();
    if (!all.player || !threads ||
        pthread_barrier_init(&all.are_prepared, NULL, (unsigned)programs) != 0)
        abort();
    for (int i = programs - 1; i >= 0; i--)
        all.player[i] = (struct player){.all = &all,
                                        .kit = kit,
                                        .objects = objects,
                                        .settings = settings,
                                        .watched = watch_slot(i),
                                        .program = kit->programs ? &kit->program[i] : &NOTHING};
    for (int i = 1; i < programs; i++)
        if (pthread_create(&threads[i], NULL, perform, &all.player[i]) != 0)
            abort();
    perform(&all.player[0]);
    for (int i = 1; i < programs; i++)
        pthread_join(threads[i], NULL);
    int64_t took_ns = arrival_now_ns() - all.begin_ns;
    level(0);
    for (int i = 0; i < programs; i++) {
        finish(&all.player[i]);
        release(&all.player[i]);
    }
    pthread_barrier_destroy(&all.are_prepared);
    free(all.player);
    free(threads);
    return took_ns;
}
