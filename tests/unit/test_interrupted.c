/* A signal handler makes a call before every instruction of the main program's calls, and of
 * whatever takes a lock. All calls return, and each is either recorded or counted as interrupted.
 *
 * * The parent steps through the child. Before each instruction it sends a signal: the child's
 * handler runs at once, or as soon as the signal is no longer blocked, up to the breakpoint at its
 * end. */
#include "base/memory.h"
#include "fake_mpi.h"
#include "ledger_reader.h"
#include "mpi/provider.h"
#include "mpi/request_memory.h"
#include "record/account.h"
#include "record/announce.h"
#include "record/recording.h"
#include "record/regions.h"
#include "record/signatures.h"
#include "stepping.h"

#include <sys/user.h>

#define NOINLINE __attribute__((noinline))

static struct truth {
    uint64_t made, made_by_handler;
    bool is_over;
} * truth;

static mpi_handle half;

/* The child */

static NOINLINE void collective(mpi_handle comm, uint64_t bytes)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Allreduce, SITE_JOB);
    announce_collective(&call, comm, bytes);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    struct traffic traffic = traffic_none(&call, comm);
    traffic.bytes = bytes;
    account_call(&call, traffic);
    truth->made++;
}

static NOINLINE void message_in_flight(uintptr_t handle)
{
    struct traffic traffic = {
        .bytes = 8, .peer = 2, .tag = 7, .flags = TRAFFIC_IS_MESSAGE, .direction = LEDGER_SENT};
    {
        struct call call UNTIL_RETURN;
        call_begin(&call, CALL_Isend, SITE_JOB);
        call_end(&call, MPI_SUCCESS);
        account_started(&call, &traffic, &handle, 0);
    }
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Wait, SITE_JOB);
    call_end(&call, MPI_SUCCESS);
    account_simple(&call);
    account_completed(&call, handle, NULL, 0);
    truth->made += 2;
}

static NOINLINE void handlers_call(void)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Bcast, SITE_JOB);
    announce_collective(&call, mpi_abi.comm_self, 8);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    account_call(&call, traffic_none(&call, mpi_abi.comm_self));
}

static void handler(int number)
{
    (void)number;
    handlers_call();
    truth->made_by_handler++;
    raise(SIGTRAP); /* a breakpoint for the parent */
}

static void begin(size_t ledger_bytes, size_t samples_bytes)
{
    truth = unit_shared(sizeof *truth);
    fake_mpi_speak("mpich");
    clock_begin(CLOCK_AUTO);
    clock_calibrate();
    CHECK_EQUAL(ledger_open("ledger", ledger_bytes), 0);
    fake_world(4, 1);
    half = fake_comm((int[]){1, 2}, 2);
    CHECK(requests_begin(false));
    samples_begin(samples_bytes);
    signatures_begin(ledger_bytes, false);
    CHECK(signal(SIGUSR1, handler) != SIG_ERR);
}

static uint64_t recorded(enum call_id id)
{
    return reader_calls(the_ledger.header, id);
}

static _Noreturn void child_works(void (*prepare)(void), void (*work)(void))
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(UNIT_SKIPPED);
    recording_begin();
    recording_switch(true);
    prepare();
    raise(SIGSTOP);
    work();
    truth->is_over = true;
    _exit(EXIT_SUCCESS);
}

/* The parent */

static void resume(pid_t child, enum __ptrace_request how, int number, int *status)
{
    CHECK(ptrace(how, child, NULL, number) == 0);
    CHECK(waitpid(child, status, 0) == child);
}

/* Position of the child; nowhere on machines that do not step. */
struct place {
    uint64_t instruction, stack;
};

static struct place place_of(pid_t child)
{
    struct place place = {0, 0};
#if defined(__x86_64__)
    struct user_regs_struct registers;
    CHECK(ptrace(PTRACE_GETREGS, child, NULL, &registers) == 0);
    place = (struct place){registers.rip, registers.rsp};
#else
    (void)child;
#endif
    return place;
}

/* From a stop at which the signal is delivered, to the same instruction. */
static void run_handler(pid_t child)
{
    int status;
    struct place before = place_of(child), now;
    resume(child, PTRACE_CONT, SIGUSR1, &status);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP); /* its breakpoint */
    do {
        resume(child, PTRACE_SINGLESTEP, 0, &status);
        CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
        now = place_of(child);
    } while (now.instruction != before.instruction || now.stack != before.stack);
}

/* Returns how often the handler ran. */
static uint64_t interrupting(void (*prepare)(void), void (*work)(void))
{
    int status;
    uint64_t times = 0;
    pid_t child = fork();
    if (child == 0)
        child_works(prepare, work);
    CHECK(waitpid(child, &status, 0) == child);
    while (WIFSTOPPED(status)) {
        bool is_delivered = WSTOPSIG(status) == SIGUSR1;
        CHECK(is_delivered || WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP);
        if (is_delivered)
            run_handler(child);
        else if (!truth->is_over)
            kill(child, SIGUSR1);
        times += is_delivered;
        resume(child, PTRACE_SINGLESTEP, 0, &status);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNIT_SKIPPED)
        unit_skip("this machine does not let a process trace its child");
    CHECK_EQUAL(status, 0);
    return times;
}

static void all_are_recorded_or_listed(void (*prepare)(void), void (*work)(void))
{
    if (!STEPPING_POSSIBLE)
        unit_skip("processes are stepped through on x86-64 alone");
    if (UNIT_SANITIZED)
        unit_skip("stepping through a sanitizer's code takes minutes; the plain variant does it");
    uint64_t times = interrupting(prepare, work);
    CHECK(times > 100);
    CHECK_EQUAL(truth->made_by_handler, times);
    uint64_t of_main = recorded(CALL_Allreduce) + recorded(CALL_Isend) + recorded(CALL_Wait);
    CHECK_EQUAL(of_main, truth->made);
    CHECK_EQUAL(recorded(CALL_Bcast) + the_ledger.header->interrupted_calls, times);
    CHECK_EQUAL(the_ledger.header->dropped_calls, 0);
    CHECK(recorded(CALL_Bcast) > 0);
    CHECK(the_ledger.header->interrupted_calls > 0);
}

/* The tests */

static void first_call(void)
{
    collective(half, 8);
}

static void three_calls(void)
{
    for (int i = 0; i < 3; i++)
        collective(mpi_abi.comm_self, 8);
}

TEST(a_call_interrupted_at_every_instruction_counts_and_so_does_the_handler_s)
{
    begin(4 << 20, 0);
    all_are_recorded_or_listed(first_call, three_calls);
}

/* The next page is beyond what the file has room for. */
static void call_and_fill_the_file(void)
{
    first_call();
    uint64_t before = the_ledger.file_bytes;
    while (the_ledger.file_bytes == before)
        CHECK(ledger_chunk(LEDGER_FACTS, 1, 0));
    while (LEDGER_HEADER_BYTES +
               (the_ledger.header->chunk_count + 1) * (size_t)LEDGER_CHUNK_BYTES <=
           the_ledger.file_bytes)
        CHECK(ledger_chunk(LEDGER_FACTS, 1, 0));
}

static void calls_that_get_new_pages(void)
{
    for (int i = 0; i < 3; i++) {
        collective(half, 8);
        this_thread->window.next = this_thread->window.end; /* the next call needs another page */
    }
}

TEST(pages_are_fetched_and_the_file_grows_while_a_handler_calls)
{
    begin(4 << 20, 1 << 20);
    all_are_recorded_or_listed(call_and_fill_the_file, calls_that_get_new_pages);
}

static void whatever_takes_a_lock(void)
{
    collective(mpi_abi.comm_world, 8); /* its first use */
    message_in_flight(0x1234);
    struct thread *thread = regions_thread(__builtin_frame_address(0));
    regions_begin(thread, "solve", REGIONS_OF_PROGRAM);
    regions_step(thread);
    regions_end(thread, REGIONS_OF_PROGRAM);
    thread_return(thread);
    request_memory_add(1, memory_take(1));
    request_memory_free(1);
    provider_site_classify((const void *)whatever_takes_a_lock);
    ledger_fact("key", "value");
    recording_switch(true);
}

SLOW(no_lock_is_held_while_a_handler_calls)
{
    begin(4 << 20, 1 << 20);
    all_are_recorded_or_listed(first_call, whatever_takes_a_lock);
}
