#include "watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAID_AFTER_S = 60, NAMED_MOST = 4, ABORT_S = 10, NS = 1000000000 };

static struct watched first;

/* The programs that it watches. `slots` is set before `kit`. */
static struct {
    struct watched *slots;
    int slot_count;
    const struct kit *kit; /* NULL: MPI_Init has not returned */
    int rank, patience_s;
    int64_t computes_s;
    int (*end)(mpi_handle, int); /* MPI_Abort */
} job = {.slots = &first, .slot_count = 1};

struct watched *watch_slot(int program)
{
    return &job.slots[program];
}

void watch_own(struct watched *slot, const char *call, int number)
{
    __atomic_store_n(&slot->number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->own, call, __ATOMIC_RELAXED);
}

void watch_own_end(struct watched *slot)
{
    __atomic_store_n(&slot->own, NULL, __ATOMIC_RELAXED);
    watch_leave(slot);
}

static bool is_inside(const struct watched *slot)
{
    return __atomic_load_n(&slot->made, __ATOMIC_RELAXED) ||
           __atomic_load_n(&slot->own, __ATOMIC_RELAXED);
}

static void say_call(FILE *line, const struct kit_program *program, const struct kit_made *made)
{
    const struct kit_call *call = &job.kit->call[made->call];
    bool is_exchange = strncmp(call->name, "MPI_Sendrecv", 12) == 0;
    bool receives = strstr(call->name, "ecv") || strstr(call->name, "robe");
    const struct {
        const char *word;
        int number;
    } said[] = {{"to", is_exchange || !receives ? call->peer : KIT_NONE},
                {"from", is_exchange ? call->received_peer
                         : receives  ? call->peer
                                     : KIT_NONE},
                {"with root", call->root},
                {"on communicator", call->comm == KIT_WORLD ? KIT_NONE : call->comm}};
    fputs(call->name, line);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].number != KIT_NONE)
            fprintf(line, " %s %d", said[i].word, said[i].number);
    fprintf(line, ", line %lld of the kit",
            program->line + (long long)(made - &job.kit->made[program->first]));
}

/* Which call started a request that is open before `end`: the last one with arguments. */
static void say_request(FILE *line, const struct kit_program *program, const struct kit_made *end,
                        int request)
{
    for (const struct kit_made *made = end; made-- > &job.kit->made[program->first];)
        if (job.kit->call[made->call].comm != KIT_NONE && kit_requests(made) == 1 &&
            job.kit->requests[made->first_request] == request) {
            fputs(", for ", line);
            say_call(line, program, made);
            return;
        }
}

static void say_slot(FILE *line, const struct watched *slot, const struct kit_program *program)
{
    const struct kit_made *made = __atomic_load_n(&slot->made, __ATOMIC_RELAXED);
    const char *own = __atomic_load_n(&slot->own, __ATOMIC_RELAXED);
    int number = __atomic_load_n(&slot->number, __ATOMIC_RELAXED);
    if (made && job.kit) {
        say_call(line, program, made);
        if (job.kit->call[made->call].comm == KIT_NONE && kit_requests(made) > 0)
            say_request(line, program, made, job.kit->requests[made->first_request]);
        return;
    }
    fputs(own ? own : "", line);
    if (!own || !job.kit || number == KIT_NONE)
        return;
    if (strcmp(own, WATCH_WAIT) == 0)
        say_request(line, program, &job.kit->made[program->first + program->count], number);
    else
        fprintf(line, " for communicator %d", number);
}

static void say_thread(FILE *line, int number, bool is_first)
{
    static const struct kit_program NOTHING;
    const struct kit_program *program =
        job.kit && job.kit->programs ? &job.kit->program[number] : &NOTHING;
    fputs(!is_first ? ";" : job.slot_count > 1 ? "," : "", line);
    if (job.slot_count > 1)
        fprintf(line, " thread %d", program->thread);
    fputs(" waits in ", line);
    say_slot(line, &job.slots[number], program);
}

/* One line, of all threads that are inside a call. */
static void say_still(int still_s, bool is_end)
{
    char *text = NULL;
    size_t bytes = 0;
    int named = 0;
    FILE *line = open_memstream(&text, &bytes);
    if (!line)
        return;
    fprintf(line, "commprof-replay: no call has ended for %d s: ", still_s);
    fprintf(line, job.kit ? "rank %d" : "a rank", job.rank);
    for (int i = 0; i < job.slot_count; i++)
        if (is_inside(&job.slots[i]) && named++ < NAMED_MOST)
            say_thread(line, i, named == 1);
    if (named > NAMED_MOST)
        fprintf(line, "; %d threads more", named - NAMED_MOST);
    if (is_end)
        fprintf(line, "; the job is ended (--patience %d)", job.patience_s);
    fputs("\n", line);
    fclose(line);
    fputs(text, stderr);
    free(text);
}

/* MPI may be what hangs. MPICH's launcher drops lines that it has not yet passed on when a job is
 * aborted. */
static void end_job(void)
{
    alarm(ABORT_S);
    sleep(1);
    if (job.kit)
        job.end(mpi_abi.comm_world, WATCH_EXIT);
    _exit(WATCH_EXIT);
}

/* How many calls have ended so far; whether a thread is inside one. */
static size_t count_ended(bool is_known, bool *inside)
{
    const struct watched *all = is_known ? job.slots : &first;
    size_t ended = 0;
    *inside = false;
    for (int i = 0; i < (is_known ? job.slot_count : 1); i++) {
        ended += __atomic_load_n(&all[i].ended, __ATOMIC_ACQUIRE);
        *inside |= is_inside(&all[i]);
    }
    return ended;
}

/* Launchers start ranks at times of their own, so MPI_Init may take a minute. */
static bool is_beyond_patience(int still_s, bool is_known)
{
    int64_t most_s = is_known || job.patience_s > SAID_AFTER_S ? job.patience_s : SAID_AFTER_S;
    return job.patience_s && still_s >= most_s + job.computes_s;
}

/* A second counts in which no call has ended though a thread was inside one all the time. */
static void *watch(void *unused)
{
    int said_s = job.patience_s && job.patience_s < 2 * SAID_AFTER_S ? (job.patience_s + 1) / 2
                                                                     : SAID_AFTER_S;
    size_t ended = 0;
    bool was_inside = false;
    for (int still_s = 0;;) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        bool is_known = __atomic_load_n(&job.kit, __ATOMIC_ACQUIRE), inside;
        size_t now = count_ended(is_known, &inside);
        still_s = now == ended && was_inside ? still_s + 1 : 0;
        ended = now;
        was_inside = inside;
        bool is_end = still_s > said_s && is_beyond_patience(still_s, is_known);
        if (still_s == said_s || is_end)
            say_still(still_s, is_end);
        if (is_end)
            end_job();
    }
    return unused;
}

void watch_begin(int patience)
{
    sigset_t all, before;
    pthread_t thread;
    job.patience_s = patience;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the job's signals are for its own thread */
    if (pthread_create(&thread, NULL, watch, NULL) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void watch_kit(const struct kit *of, int own_rank, bool has_gaps, int (*end)(mpi_handle, int))
{
    struct watched *all = calloc(of->programs > 1 ? (size_t)of->programs : 1, sizeof *all);
    int64_t longest_ns = of->window_ns > of->gaps_ns ? of->window_ns : of->gaps_ns;
    if (!all)
        abort();
    all[0].ended = first.ended;
    job.slots = all;
    job.slot_count = of->programs > 1 ? of->programs : 1;
    job.rank = own_rank;
    job.end = end;
    job.computes_s = has_gaps ? longest_ns / NS : 0;
    __atomic_store_n(&job.kit, of, __ATOMIC_RELEASE);
}
