/* Stops a child process after each of its instructions or system calls, so that a test sees every
 * state that a kill could leave. */
#ifndef STEPPING_H
#define STEPPING_H

#include "unit.h"

#include <sys/ptrace.h>

/* On other processors an atomic instruction may be a loop, which never ends if it is stopped in the
 * middle. */
#if defined(__x86_64__)
#define STEPPING_POSSIBLE true
#else
#define STEPPING_POSSIBLE false
#endif

enum {
    STEPPING_SYSTEM_CALL = 0x80
}; /* bit in the signal of a stop at a system call: PTRACE_O_TRACESYSGOOD */

/* How the child is resumed: as stepping() was told, until `look` changes it. */
static enum __ptrace_request stepping_by;

static inline _Noreturn void stepping_child(void (*work)(void))
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(UNIT_SKIPPED);
    raise(SIGSTOP);
    work();
    _exit(EXIT_SUCCESS);
}

/* Run `work` in a child, and `look` in this process at each stop: before the first instruction and
 * after each, or before and after each system call (PTRACE_SYSCALL). Returns the number of
 * stops. */
static inline uint64_t stepping(enum __ptrace_request step, void (*work)(void),
                                void (*look)(pid_t child))
{
    if (!STEPPING_POSSIBLE)
        unit_skip("processes are stepped through on x86-64 alone");
    if (UNIT_SANITIZED)
        unit_skip("stepping through a sanitizer's code takes minutes; the plain variant does it");
    int status;
    uint64_t steps = 0;
    stepping_by = step;
    pid_t child = fork();
    if (child == 0)
        stepping_child(work);
    for (waitpid(child, &status, 0); WIFSTOPPED(status); waitpid(child, &status, 0)) {
        if (steps++ == 0)
            CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD) == 0);
        look(child);
        bool is_fault =
            (WSTOPSIG(status) & ~STEPPING_SYSTEM_CALL) != SIGTRAP && WSTOPSIG(status) != SIGSTOP;
        CHECK(ptrace(stepping_by, child, NULL, is_fault ? WSTOPSIG(status) : 0) == 0);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNIT_SKIPPED)
        unit_skip("this machine does not let a process trace its child");
    CHECK_EQUAL(status, 0);
    return steps;
}

#endif
