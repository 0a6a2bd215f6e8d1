/* MPI_Pcontrol: switches counting, and marks steps and regions.
 *
 * Two conventions give the levels 1, 0 and -1 a meaning (commprof(7) describes all levels):
 *
 *     level     ours, which is also mpiP's    IPM's, with a name as second argument
 *      1        counting on                   a region begins
 *      0        counting off                  an event
 *     -1        nothing                       the region ends
 *
 * Whether a caller has passed a second argument is not known: if it has not, a register holds what
 * was in it before, and that may even be the address of a text. So a name shows that a program
 * follows IPM's convention only where the call would do nothing in ours: with 1 while counting is
 * on, with 0 after a 0 that had a name, too, and with -1. A call without a name shows that it does
 * not. Until something is shown the convention is ours; a 0 that turns out to have been an event is
 * undone. */
#include "functions.h"
#include "record/account.h"
#include "record/recording.h"
#include "record/regions.h"
#include "run/runtime.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the page that contains this address can be read: the kernel reads a signal mask before it
 * rejects an unknown action. */
static bool is_readable(const char *address)
{
    enum { MASK_BYTES = 8, NO_SUCH_ACTION = ~0 };
    uintptr_t mask = (uintptr_t)address & ~(uintptr_t)(MASK_BYTES - 1);
    if (!mask)
        return false; /* for the kernel, NULL means that there is no mask to read */
    int before = errno;
    errno = 0;
    syscall(SYS_rt_sigprocmask, NO_SUCH_ACTION, mask, NULL, (size_t)MASK_BYTES);
    bool is_there = errno != EFAULT;
    errno = before;
    return is_there;
}

/* The text, or NULL if it is none or too long for the name of a region. Calls that are meant for
 * another profiler have no name, and Fortran and Python cannot pass one: `text` is then an
 * arbitrary value, so each page is checked before it is read. */
static const char *as_name(const char *text)
{
    enum { SMALLEST_PAGE = 4096 };
    for (size_t i = 0; i < REGION_NAME_BYTES; i++) {
        bool is_on_another_page = i == 0 || ((uintptr_t)(text + i) & (SMALLEST_PAGE - 1)) == 0;
        if (is_on_another_page && !is_readable(text + i))
            return NULL;
        if (text[i] == '\0')
            return text;
        if ((unsigned char)text[i] < ' ')
            return NULL;
    }
    return NULL;
}

/* IPM's convention */

static const char REGIONS_OF_IPM[] = "IPM";

static struct {
    bool is_followed;
    bool has_paused; /* a 0 with a name has paused counting */
} ipm;

/* The name, or NULL. An address that a register holds by chance may be that of a number, or of an
 * object of Python, whose count of references looks like one or two characters. */
static const char *as_word(int level, const char *text)
{
    const int shortest = level == -1 || __atomic_load_n(&ipm.is_followed, __ATOMIC_RELAXED) ? 1 : 3;
    bool has_letter = false;
    const char *name = as_name(text), *at = name;
    for (; at && *at; at++) {
        if ((unsigned char)*at > '~')
            return NULL;
        has_letter |= (*at | ' ') >= 'a' && (*at | ' ') <= 'z';
    }
    return has_letter && at - name >= shortest ? name : NULL;
}

static bool follows_ipm(int level, const char *name)
{
    if (!name)
        __atomic_store_n(&ipm.has_paused, false, __ATOMIC_RELAXED);
    bool is_paused = __atomic_load_n(&ipm.has_paused, __ATOMIC_RELAXED);
    bool has_no_other_effect = level == -1 || (level == 1 ? recording_is_on() : is_paused);
    if (!name || has_no_other_effect)
        __atomic_store_n(&ipm.is_followed, name != NULL, __ATOMIC_RELAXED);
    return __atomic_load_n(&ipm.is_followed, __ATOMIC_RELAXED);
}

/* The call itself counts in the region; an event is a region with nothing else in it. */
static void mark(const struct call *call, int level, const char *name)
{
    if (__atomic_exchange_n(&ipm.has_paused, false, __ATOMIC_RELAXED))
        recording_switch(true);
    if (level >= 0)
        regions_begin(call->thread, name, REGIONS_OF_IPM);
    account_simple(call);
    if (level <= 0)
        regions_end(call->thread, REGIONS_OF_IPM);
}

/* Our convention */

static void pause_counting(const char *name)
{
    char by[REGION_NAME_BYTES + 32];
    if (!recording_is_on())
        return;
    snprintf(by, sizeof by, name ? "MPI_Pcontrol(0, \"%s\")" : "MPI_Pcontrol(0)", name);
    recording_paused_by(by);
    recording_switch(false);
    __atomic_store_n(&ipm.has_paused, name != NULL, __ATOMIC_RELAXED);
}

static void resume_counting(void)
{
    __atomic_store_n(&ipm.has_paused, false, __ATOMIC_RELAXED);
    recording_switch(true);
}

/* The call itself is counted: at both ends of a pause, and before a reset. */
static void switch_counting(const struct call *call, int level, const char *name)
{
    if (level == 1)
        resume_counting();
    account_simple(call);
    if (level == 0)
        pause_counting(name);
    while (!name && regions_end(call->thread, REGIONS_OF_IPM) > 0)
        continue;
}

/* Does what the level requests; other levels are ignored. */
static void control(const struct call *call, int level, const char *text)
{
    if (level >= -1 && level <= 1) {
        const char *name = as_word(level, text);
        if (follows_ipm(level, name))
            mark(call, level, name);
        else
            switch_counting(call, level, name);
        return;
    }
    account_simple(call);
    if (level == 2)
        recording_reset();
    else if (level == 3)
        runtime_snapshot();
    else if (level == 4)
        regions_step(call->thread);
    else if (level == 5)
        regions_begin(call->thread, as_name(text), REGIONS_OF_PROGRAM);
    else if (level == 6)
        regions_end(call->thread, REGIONS_OF_PROGRAM);
}

/* The variadic arguments are not passed on: MPI libraries ignore them. */
static int wrap_Pcontrol(call_site site, void *target, int level, const char *text)
{
    int (*real)(int, ...) = (int (*)(int, ...))target;
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Pcontrol, site);
    int error = real(level);
    call_end(&call, error);
    if (call.thread)
        control(&call, level, text);
    return error;
}

/* The argument after `level` if the level may have one, else NULL. */
#define TEXT_AFTER(LEVEL, TEXT)                                        \
    va_list further;                                                   \
    va_start(further, LEVEL);                                          \
    bool may_have_text = LEVEL == 5 || (LEVEL >= -1 && LEVEL <= 1);    \
    const char *TEXT = may_have_text ? va_arg(further, char *) : NULL; \
    va_end(further)

EXPORT int MPI_Pcontrol(const int level, ...);
int MPI_Pcontrol(const int level, ...)
{
    TEXT_AFTER(level, text);
    call_site site = provider_site(__builtin_return_address(0));
    return wrap_Pcontrol(site, function_target(FUNCTION_Pcontrol, ENTRY_MPI, site), level, text);
}

EXPORT int PMPI_Pcontrol(const int level, ...);
int PMPI_Pcontrol(const int level, ...)
{
    TEXT_AFTER(level, text);
    call_site site = provider_site(__builtin_return_address(0));
    return wrap_Pcontrol(site, function_target(FUNCTION_Pcontrol, ENTRY_PMPI, site), level, text);
}
