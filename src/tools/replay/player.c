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

static const struct {
    const char *name;
    enum shape shape;
} SHAPES[] = {
    {"barrier", BARRIER},
    {"bcast", BCAST},
    {"gather", GATHER},
    {"scatter", SCATTER},
    {"gatherv", GATHERV},
    {"scatterv", SCATTERV},
    {"allgather", ALLGATHER},
    {"alltoall", ALLGATHER},
    {"allgatherv", ALLGATHERV},
    {"alltoallv", ALLTOALLV},
    {"alltoallw", ALLTOALLW},
    {"reduce", REDUCE},
    {"allreduce", ALLREDUCE},
    {"scan", ALLREDUCE},
    {"exscan", ALLREDUCE},
    {"reduce_scatter", REDUCE_SCATTER},
    {"reduce_scatter_block", REDUCE_SCATTER_BLOCK},
    {"send", SEND},
    {"ssend", SEND},
    {"rsend", SEND},
    {"recv", RECV},
    {"sendrecv", SENDRECV},
    {"probe", PROBE},
    {"iprobe", IPROBE},
    {"mprobe", MPROBE},
    {"improbe", IMPROBE},
    {"mrecv", MRECV},
    {"imrecv", IMRECV},
    {"start", START},
    {"startall", STARTALL},
    {"request_free", REQUEST_FREE},
    {"wait", WAIT},
    {"waitall", WAITALL},
    {"waitany", WAITANY},
    {"waitsome", WAITSOME},
    {"test", TEST},
    {"testall", TESTALL},
    {"testany", TESTANY},
    {"testsome", TESTSOME},
};

/* The function behind each call of the kit. */
static struct function {
    void *address;
    enum shape shape;
    bool starts;  /* returns a request */
    bool sets_up; /* returns a persistent one */
    int64_t room; /* bytes that it may touch in each of its buffers */
} * functions;

/* MPI_Iprobe is in the table, MPI_Isend a Send that starts. */
static bool find(struct function *function, const char *call)
{
    const char *name = call + strlen("MPI_"), *suffix = strstr(call, "_init");
    size_t bytes = suffix ? (size_t)(suffix - name) : strlen(call) - strlen("MPI_");
    if (strncmp(call, "MPI_", 4) != 0 || (suffix && strcmp(suffix, "_init") != 0))
        return false;
    function->address = library_function(call);
    function->sets_up = suffix;
    for (int starts = 0; function->address && starts < (suffix ? 1 : 2); starts++)
        for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
            if ((!starts || *name == 'I') && strlen(SHAPES[i].name) + (size_t)starts == bytes &&
                (starts || *name == toupper((unsigned char)*SHAPES[i].name)) &&
                strncmp(name + starts + !starts, SHAPES[i].name + !starts,
                        bytes - (size_t)starts - !starts) == 0) {
                function->shape = SHAPES[i].shape;
                function->starts = starts || suffix || function->shape == IMRECV;
                return !(starts || suffix) || function->shape < SENDRECV;
            }
    return false;
}

static bool has_arguments(const struct kit_call *call, enum shape shape)
{
    bool is_exchange = shape == ALLTOALLV || shape == ALLTOALLW, is_message = shape >= SEND;
    bool has_root = shape == BCAST || shape == GATHER || shape == SCATTER || shape == GATHERV ||
                    shape == SCATTERV || shape == REDUCE;
    bool has_vector = shape == GATHERV || shape == SCATTERV || shape == ALLGATHERV ||
                      shape == REDUCE_SCATTER || is_exchange;
    return shape >= START || shape == MRECV || shape == IMRECV ||
           (call->comm != KIT_NONE && (!has_root || call->root != KIT_NONE) &&
            (!has_vector || call->vector != KIT_NONE) &&
            (!is_exchange || call->received_vector != KIT_NONE) &&
            (!is_message || call->tag != KIT_NONE));
}

/* Each call finds its requests as it needs them, and all messages that are found are received. */
static bool has_requests(const struct kit *kit, const struct kit_program *program)
{
    enum state { NONE, OPEN, INACTIVE, ACTIVE, MATCHED };
    char *states = calloc((size_t)program->requests + 1, 1);
    bool is_right = states && program->before <= program->count;
    for (size_t i = 0; is_right && i < program->count; i++) {
        const struct kit_made *made = &kit->made[program->first + i];
        const struct function *function = &functions[made->call];
        enum shape shape = function->shape;
        bool is_one = function->starts || (shape >= MPROBE && shape <= MRECV) || shape == START ||
                      shape == REQUEST_FREE;
        is_right = is_one ? kit_requests(made) == 1 : (shape >= START) == (kit_requests(made) > 0);
        is_right = is_right && (i >= program->before || function->sets_up);
        for (int j = 0; is_right && j < kit_requests(made); j++) {
            char *at = &states[kit->requests[made->first_request + (size_t)j]];
            bool completes = shape >= WAIT, is_found = shape == MRECV || shape == IMRECV;
            bool restarts = shape == START || shape == STARTALL, frees = shape == REQUEST_FREE;
            is_right = completes           ? *at == OPEN || *at == ACTIVE
                       : is_found          ? *at == MATCHED
                       : restarts || frees ? *at == INACTIVE
                                           : *at == NONE;
            *at = completes                 ? (*at == OPEN ? NONE : INACTIVE)
                  : restarts                ? ACTIVE
                  : function->sets_up       ? INACTIVE
                  : function->starts        ? OPEN
                  : shape == MRECV || frees ? NONE
                                            : MATCHED;
        }
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

/* Bytes that the call may touch on either side; -1: more than any memory has. */
static int64_t room_of(const struct kit *kit, const struct kit_call *call, enum shape shape)
{
    int type = shape == ALLTOALLW ? KIT_NONE : call->type;
    int64_t all = 0, received = span_of(kit, call->received_type, call->received_count);
    bool is_per_rank =
        shape == GATHER || shape == SCATTER || shape == ALLGATHER || shape == REDUCE_SCATTER_BLOCK;
    bool fits =
        add(&all, span_of(kit, type, call->count), is_per_rank ? kit_ranks(kit, call->comm) : 1);
    const int vectors[] = {call->vector, call->received_vector};
    for (int side = 0; side < 2; side++)
        for (int i = 0; fits && vectors[side] != KIT_NONE && i < kit->vector[vectors[side]].length;
             i++)
            fits = add(&all, span_of(kit, type, kit->vector[vectors[side]].counts[i]), 1);
    if (!fits || received > ROOM_MOST)
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
            : !has_arguments(&kit->call[i], functions[i].shape) ? "the kit lacks arguments of"
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

/* Memory is touched by the thread that uses it. */
static void prepare(struct player *player)
{
    const struct kit *kit = player->kit;
    const struct kit_program *program = player->program;
    int blocking = program->requests, most = program->requests + 1;
    int64_t *room = calloc((size_t)most, sizeof *room); /* bytes of the buffers */
    player->requests = calloc((size_t)most, sizeof *player->requests);
    player->together = calloc((size_t)most, sizeof *player->together);
    player->indices = calloc((size_t)most, sizeof *player->indices);
    player->set_up = calloc((size_t)most, sizeof *player->set_up);
    player->buffers = calloc((size_t)most, sizeof *player->buffers);
    int64_t memory = 0;
    if (!room || !player->requests || !player->together || !player->indices || !player->set_up ||
        !player->buffers)
        abort();
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

static int move(struct player *player, const struct function *function, const struct kit_call *call,
                struct pair buffers, void *request)
{
    typedef mpi_handle H;
    const struct objects *objects = player->objects;
    H comm = mpi_handle_load(&objects->comm[call->comm], 0);
    H type = call->type == KIT_NONE ? mpi_abi.byte : mpi_handle_load(&objects->type[call->type], 0);
    int count = call->count == KIT_NONE ? 0 : (int)call->count;
    int peer = call->peer == KIT_NONE ? mpi_abi.proc_null : call->peer;
    void *sent = call->in_place == 1 ? mpi_abi.in_place : buffers.sent,
         *received = buffers.received;
    const struct kit_vector nothing = {0}, *vectors = player->kit->vector;
    const struct kit_vector *vector = call->vector == KIT_NONE ? &nothing : &vectors[call->vector];
    const struct kit_vector *received_vector =
        call->received_vector == KIT_NONE ? &nothing : &vectors[call->received_vector];
    uint64_t message = 0;
    switch (function->shape) {
    case BARRIER:
        return MAKE(ARGUMENTS(H), comm);
    case BCAST:
        return MAKE(ARGUMENTS(void *, int, H, int, H),
                    ARGUMENTS(received, count, type, call->root, comm));
    case GATHER:
        return MAKE(ARGUMENTS(void *, int, H, void *, int, H, int, H),
                    ARGUMENTS(sent, count, type, received, count, type, call->root, comm));
    case SCATTER: /* in place is what the root receives */
        return MAKE(ARGUMENTS(void *, int, H, void *, int, H, int, H),
                    ARGUMENTS(buffers.sent, count, type,
                              call->in_place == 1 ? mpi_abi.in_place : received, count, type,
                              call->root, comm));
    case GATHERV:
        return MAKE(ARGUMENTS(void *, int, H, void *, int *, int *, H, int, H),
                    ARGUMENTS(sent, count, type, received, vector->counts, vector->places, type,
                              call->root, comm));
    case SCATTERV:
        return MAKE(ARGUMENTS(void *, int *, int *, H, void *, int, H, int, H),
                    ARGUMENTS(buffers.sent, vector->counts, vector->places, type,
                              call->in_place == 1 ? mpi_abi.in_place : received, count, type,
                              call->root, comm));
    case ALLGATHER:
        return MAKE(ARGUMENTS(void *, int, H, void *, int, H, H),
                    ARGUMENTS(sent, count, type, received, count, type, comm));
    case ALLGATHERV:
        return MAKE(
            ARGUMENTS(void *, int, H, void *, int *, int *, H, H),
            ARGUMENTS(sent, count, type, received, vector->counts, vector->places, type, comm));
    case ALLTOALLV:
        return MAKE(ARGUMENTS(void *, int *, int *, H, void *, int *, int *, H, H),
                    ARGUMENTS(sent, vector->counts, vector->places, type, received,
                              received_vector->counts, received_vector->places, type, comm));
    case ALLTOALLW:
        return MAKE(ARGUMENTS(void *, int *, int *, void *, void *, int *, int *, void *, H),
                    ARGUMENTS(sent, vector->counts, vector->places, objects->bytes, received,
                              received_vector->counts, received_vector->places, objects->bytes,
                              comm));
    case REDUCE:
        return MAKE(ARGUMENTS(void *, void *, int, H, H, int, H),
                    ARGUMENTS(sent, received, count, type,
                              objects_op(objects, call->op, call->type), call->root, comm));
    case REDUCE_SCATTER:
        return MAKE(ARGUMENTS(void *, void *, int *, H, H, H),
                    ARGUMENTS(sent, received, vector->counts, type,
                              objects_op(objects, call->op, call->type), comm));
    case ALLREDUCE:
    case REDUCE_SCATTER_BLOCK:
        return MAKE(ARGUMENTS(void *, void *, int, H, H, H),
                    ARGUMENTS(sent, received, count, type,
                              objects_op(objects, call->op, call->type), comm));
    case SEND:
        return MAKE(ARGUMENTS(void *, int, H, int, int, H),
                    ARGUMENTS(buffers.sent, count, type, peer, call->tag, comm));
    case RECV:
        if (function->starts)
            return MAKE(ARGUMENTS(void *, int, H, int, int, H),
                        ARGUMENTS(received, count, type, peer, call->tag, comm));
        return ((int (*)(void *, int, H, int, int, H, void *))function->address)(
            received, count, type, peer, call->tag, comm, mpi_abi.status_ignore);
    case MRECV:
        return ((int (*)(void *, int, H, void *, void *))function->address)(
            received, count, type, request, mpi_abi.status_ignore);
    case IMRECV:
        mpi_handle_store(&message, mpi_handle_load(request, 0));
        return ((int (*)(void *, int, H, void *, void *))function->address)(received, count, type,
                                                                            &message, request);
    default: /* SENDRECV */
        return ((int (*)(void *, int, H, int, int, void *, int, H, int, int, H,
                         void *))function->address)(
            buffers.sent, count, type, peer, call->tag, received,
            call->received_count == KIT_NONE ? 0 : (int)call->received_count,
            call->received_type == KIT_NONE
                ? mpi_abi.byte
                : mpi_handle_load(&objects->type[call->received_type], 0),
            call->received_peer == KIT_NONE ? mpi_abi.proc_null : call->received_peer,
            call->received_tag == KIT_NONE ? 0 : call->received_tag, comm, mpi_abi.status_ignore);
    }
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
    typedef mpi_handle H;
    H comm = mpi_handle_load(&player->objects->comm[call->comm], 0);
    void *address = function->address, *ignore = mpi_abi.status_ignore;
    int peer = call->peer == KIT_NONE ? mpi_abi.proc_null : call->peer, tag = call->tag, flag = 0;
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

/* Polls as often as it takes, and makes those that complete one or some until all are. */
static void complete(struct player *player, const struct kit_made *made)
{
    const struct kit_call *call = &player->kit->call[made->call];
    const struct function *function = &functions[made->call];
    void *address = function->address, *ignore = mpi_abi.status_ignore,
         *requests = player->together;
    int count = kit_requests(made), flag = 0, done = 0;
    for (int left = count; left > 0;) {
        int before = left;
        switch (function->shape) {
        case WAIT:
            ((int (*)(void *, void *))address)(requests, ignore);
            return;
        case WAITALL:
            ((int (*)(int, void *, void *))address)(count, requests, ignore);
            return;
        case WAITANY:
            ((int (*)(int, void *, int *, void *))address)(count, requests, &done, ignore);
            left = done == MPI_UNDEFINED ? 0 : left - 1;
            break;
        case TEST:
            ((int (*)(void *, int *, void *))address)(requests, &flag, ignore);
            left = !flag;
            break;
        case TESTALL:
            ((int (*)(int, void *, int *, void *))address)(count, requests, &flag, ignore);
            left = !flag;
            break;
        case TESTANY:
            ((int (*)(int, void *, int *, int *, void *))address)(count, requests, &done, &flag,
                                                                  ignore);
            left = !flag ? left : done == MPI_UNDEFINED ? 0 : left - 1;
            break;
        default: /* WAITSOME, TESTSOME */
            ((int (*)(int, void *, int *, int *, void *))address)(count, requests, &done,
                                                                  player->indices, ignore);
            left = done == MPI_UNDEFINED ? 0 : left - done;
        }
        pause_after(player, call, left < before);
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
