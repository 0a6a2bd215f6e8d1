#include "player.h"

#include "race.h"
#include "watch.h"
#include "wrappers/shapes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define ROOM_MOST ((int64_t)1 << 40) /* bytes of a buffer */

/* played.def says what they are. */
enum does { MOVING, FINDING, MATCHING, TAKING, FREEING, RESTARTING, COMPLETING };

enum shape {
#define PLAYED(SHAPE, DOES) SHAPE,
#include "played.def"
};

#define TEXT(...) TEXT_OF_EXPANDED(__VA_ARGS__)
#define TEXT_OF_EXPANDED(...) #__VA_ARGS__

static const struct shaped {
    const char *name, *arguments; /* the words of ARGUMENTS_x */
    enum does does;
} SHAPES[] = {
#define PLAYED(SHAPE, DOES) {#SHAPE, TEXT(ARGUMENTS_##SHAPE), DOES},
#include "played.def"
};

static const char *const UNPLAYED[] = {
#define UNPLAYED(NAME) "MPI_" #NAME,
#include "played.def"
};

static const struct {
    const char *name, *kind, *shape;
} CALLS[] = {
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) {"MPI_" #NAME, #KIND, #SHAPE},
#include "wrappers/calls.def"
#undef CALL
};

/* The function behind each call of the kit. */
static struct function {
    void *address;
    enum shape shape;
    enum does does;
    bool starts;         /* returns a request */
    bool sets_up;        /* returns a persistent one */
    bool reduces;        /* has an operation */
    bool has_one_buffer; /* at most */
    int64_t room;        /* bytes that it may touch in each of its buffers */
} * functions;

static bool has(enum shape shape, const char *argument)
{
    return strstr(SHAPES[shape].arguments, argument);
}

static bool find(struct function *function, const char *call)
{
    const char *kind = "", *shape = "";
    function->address = library_function(call);
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (strcmp(CALLS[i].name, call) == 0)
            kind = CALLS[i].kind, shape = CALLS[i].shape;
    for (size_t i = 0; i < sizeof UNPLAYED / sizeof *UNPLAYED; i++)
        if (strcmp(UNPLAYED[i], call) == 0)
            return false;
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        if (strcmp(SHAPES[i].name, shape) == 0) {
            function->shape = (enum shape)i;
            function->does = SHAPES[i].does;
            function->sets_up = strncmp(kind, "PREPARING", strlen("PREPARING")) == 0;
            function->starts =
                function->sets_up || strncmp(kind, "STARTING", strlen("STARTING")) == 0;
            function->reduces = has(function->shape, "op,");
            function->has_one_buffer = !has(function->shape, "sendbuf");
            return function->address;
        }
    return false;
}

/* Whether it has those without which it cannot be made. */
static bool has_arguments(const struct kit_call *call, enum shape shape)
{
    return !((has(shape, "comm") && call->comm == KIT_NONE) ||
             (has(shape, "root") && call->root == KIT_NONE) ||
             (has(shape, "counts") && call->vector == KIT_NONE) ||
             (has(shape, "rdispls") && call->received_vector == KIT_NONE) ||
             (has(shape, "tag") && call->tag == KIT_NONE));
}

enum request_state { NONE, OPEN, INACTIVE, ACTIVE, MATCHED };

/* The state of a request after a call; -1: the call cannot have it in this one. */
static int state_after(const struct function *function, int state)
{
    static const struct {
        enum does does;
        enum request_state from, to;
    } CHANGES[] = {
        {MOVING, NONE, NONE},           {MATCHING, NONE, MATCHED},      {TAKING, MATCHED, NONE},
        {FREEING, INACTIVE, NONE},      {RESTARTING, INACTIVE, ACTIVE}, {COMPLETING, OPEN, NONE},
        {COMPLETING, ACTIVE, INACTIVE},
    };
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++)
        if (CHANGES[i].does == function->does && (int)CHANGES[i].from == state)
            return function->sets_up ? INACTIVE : function->starts ? OPEN : (int)CHANGES[i].to;
    return -1;
}

/* Whether a call finds its requests as it needs them; it changes their states. */
static bool changes_requests(const struct kit *kit, const struct kit_made *made, char *states)
{
    const struct function *function = &functions[made->call];
    bool has_one = function->starts || function->shape == START ||
                   (function->does >= MATCHING && function->does <= FREEING);
    int count = kit_requests(made);
    if (has_one ? count != 1 : (function->does >= RESTARTING) != (count > 0))
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
    bool is_per_rank = shape == GATHER || shape == SCATTER || shape == ALLGATHER ||
                       shape == ALLTOALL || shape == REDUCE_SCATTER_BLOCK;
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
static bool is_placed(const struct kit_call *call, const struct function *function)
{
    return call->buffer_at != KIT_NONE &&
           (function->has_one_buffer || call->received_at != KIT_NONE);
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

/* The place of its buffers, and of the request that it starts; the last is for blocking calls. */
static int place_of(const struct player *player, const struct kit_made *made)
{
    return functions[made->call].starts ? player->kit->requests[made->first_request]
                                        : player->program->requests;
}

/* Memory is touched by the thread that uses it. */
static void prepare(struct player *player)
{
    const struct kit *kit = player->kit;
    const struct kit_program *program = player->program;
    int most = program->requests + 1;
    int64_t *room = zeroed(most, sizeof *room), memory = 0; /* bytes of the buffers */
    player->requests = zeroed(most, sizeof *player->requests);
    player->together = zeroed(most, sizeof *player->together);
    player->indices = zeroed(most, sizeof *player->indices);
    player->set_up = zeroed(most, sizeof *player->set_up);
    player->buffers = zeroed(most, sizeof *player->buffers);
    for (size_t i = 0; i < program->count; i++) {
        const struct kit_made *made = &kit->made[program->first + i];
        const struct function *function = &functions[made->call];
        int at = place_of(player, made);
        const struct kit_call *call = &kit->call[made->call];
        int64_t end = end_of_memory(call, function->room);
        if (function->room > room[at] && !is_placed(call, function))
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

static mpi_handle type_of(const struct objects *objects, int type)
{
    return type == KIT_NONE ? mpi_abi.byte : mpi_handle_load(&objects->type[type], 0);
}

static mpi_handle comm_of(const struct objects *objects, int comm)
{
    return comm == KIT_NONE ? mpi_abi.comm_null : mpi_handle_load(&objects->comm[comm], 0);
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

/* A call with one buffer has it at `buffer_at`, whether it sends it or not. */
static struct pair buffers_of(const struct player *player, int number, int own)
{
    const struct kit_call *call = &player->kit->call[number];
    struct pair pair = player->buffers[own];
    if (call->buffer_at != KIT_NONE)
        pair.sent = player->memory + call->buffer_at;
    if (call->received_at != KIT_NONE)
        pair.received = player->memory + call->received_at;
    else if (is_placed(call, &functions[number]))
        pair.received = pair.sent;
    return pair;
}

/* The same of a call that is made, or that it is made in place. */
static struct pair buffers_in_place(const struct player *player, const struct kit_made *made)
{
    struct pair pair = buffers_of(player, made->call, place_of(player, made));
    enum shape shape = functions[made->call].shape;
    if (player->kit->call[made->call].in_place == 1 && shape < MESSAGE && shape != BCAST)
        *(shape == SCATTER || shape == SCATTERV ? &pair.received : &pair.sent) = mpi_abi.in_place;
    return pair;
}

static mpi_handle empty_info;

/* The results of calls that poll or complete. */
struct found {
    int flag, index, outcount;
};

#define MAKE(KIND, SHAPE)                                                     \
    ((int (*)(PARAMETERS_OF_##KIND(SHAPE, int, int, int)))function->address)( \
        ARGUMENTS_OF_##KIND(SHAPE))
#define PLAYED_MOVING(SHAPE)                                                           \
    case SHAPE:                                                                        \
        return function->sets_up && SHAPE < MESSAGE ? MAKE(PREPARING_WITH_INFO, SHAPE) \
               : function->starts                   ? MAKE(STARTING, SHAPE)            \
                                                    : MAKE(BLOCKING, SHAPE);
#define PLAYED(SHAPE, DOES) \
    case SHAPE:             \
        return MAKE(BLOCKING, SHAPE);

/* Makes a call once, with its requests in player->together. The arguments of all shapes are here,
 * under their names in shapes.h. */
static int make_once(const struct player *player, const struct kit_made *made, struct found *found)
{
    const struct function *function = &functions[made->call];
    const struct kit_call *call = &player->kit->call[made->call];
    const struct objects *objects = player->objects;
    enum shape shape = function->shape;
    bool is_exchange = shape == SENDRECV, has_both = shape == ALLTOALLV || shape == ALLTOALLW;
    const struct pair pair = buffers_in_place(player, made);
    const struct kit_vector *sent = vector_of(player->kit, call->vector);
    const struct kit_vector *received = vector_of(player->kit, call->received_vector);
    uint64_t matched = *player->together;

    void *buffer = pair.received, *buf = shape == MESSAGE ? pair.sent : pair.received;
    void *sendbuf = pair.sent, *recvbuf = pair.received;
    int count = function->does >= FREEING ? kit_requests(made) : count_of(call->count);
    int sendcount = count, recvcount = is_exchange ? count_of(call->received_count) : count;
    const int *sendcounts = sent->counts, *recvcounts = (has_both ? received : sent)->counts;
    const int *displs = sent->places, *sdispls = sent->places, *rdispls = received->places;
    mpi_handle type = type_of(objects, call->type), sendtype = type;
    mpi_handle recvtype = is_exchange ? type_of(objects, call->received_type) : type;
    const void *sendtypes = objects->bytes, *recvtypes = objects->bytes;
    mpi_handle op = function->reduces ? objects_op(objects, call->op, call->type) : 0;
    int dest = peer_of(call->peer), source = is_exchange ? peer_of(call->received_peer) : dest;
    int tag = call->tag, sendtag = tag, recvtag = count_of(call->received_tag), root = call->root;
    mpi_handle comm = comm_of(objects, call->comm), info = empty_info;
    void *request = player->together, *requests = request;
    void *message = function->does == TAKING ? &matched : request;
    void *status = mpi_abi.status_ignore, *statuses = status;
    int *flag = &found->flag, *index = &found->index, *outcount = &found->outcount;
    int *indices = player->indices;

    switch (shape) {
#include "played.def"
    }
    return MPI_SUCCESS;
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

/* Polls as often as it takes, and makes calls that complete one or some until all are complete. */
static void complete(struct player *player, const struct kit_made *made)
{
    const struct function *function = &functions[made->call];
    bool is_any = function->shape == WAITANY || function->shape == TESTANY;
    int left = function->does == FINDING ? 1 : kit_requests(made);
    while (left > 0) {
        struct found found = {.flag = 1, .outcount = is_any ? 1 : left};
        make_once(player, made, &found);
        bool is_none_open = found.index == MPI_UNDEFINED || found.outcount == MPI_UNDEFINED;
        int done = !found.flag ? 0 : is_none_open ? left : found.outcount;
        pause_after(player, &player->kit->call[made->call], done > 0);
        left -= done;
    }
}

/* Moves data, or begins to. */
static void move(struct player *player, const struct kit_made *made)
{
    const struct player_settings *settings = player->settings;
    const struct function *function = &functions[made->call];
    const struct kit_call *call = &player->kit->call[made->call];
    struct found unused;
    if (function->starts) {
        make_once(player, made, &unused);
        return;
    }
    if (function->shape < MESSAGE) /* a collective */
        arrival_wait(settings->arrival, comm_of(player->objects, call->comm), settings->is_counted);
    race_enter((int)made->call);
    race_leave(make_once(player, made, &unused));
}

static void settle(const struct player *player, const struct kit_made *made)
{
    const struct function *function = &functions[made->call];
    bool restarts = function->does == RESTARTING;
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
    const struct function *function = &functions[made->call];
    const int *which = &player->kit->requests[made->first_request];
    watch_enter(player->watched, made);
    gather(player, which, kit_requests(made));
    if (function->does == MOVING || function->does == TAKING)
        move(player, made);
    else
        complete(player, made);
    if (function->shape == MRECV)
        mpi_handle_store(player->together, mpi_abi.request_null);
    scatter(player, which, kit_requests(made));
    if (function->sets_up)
        player->set_up[*which] = made->call;
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
