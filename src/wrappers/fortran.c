/* Calls that a library's Fortran binding answers itself, so that no wrapper of C's functions sees
 * them. Open MPI does so for the completion of arrays of no requests, and for
 * MPI_Request_get_status with MPI_STATUS_IGNORE.
 *
 * The entries of these functions are wrapped, under the names that compilers use, and under that by
 * which Open MPI's module mpi_f08 reaches them. A call is counted here if nothing inside it was
 * counted, so no call counts twice, whatever a version of a library does. Calls for one request or
 * more are passed on at once. */
#include "base/clock.h"
#include "base/quiet.h"
#include "base/scope.h"
#include "functions.h"
#include "record/account.h"

static void function_is_missing(void)
{
}

/* A function as its caller reaches it without the profiler. */
static __attribute__((noinline)) void *find_real(const char *name, const void *return_address)
{
    Dl_info caller, found;
    struct quiet before = quiet_begin();
    bool is_found = (dladdr(return_address, &caller) && caller.dli_fname &&
                     scope_of_caller(&caller, name, &found)) ||
                    scope_definer(RTLD_NEXT, name, &found) ||
                    scope_anywhere("mpi", name, NULL, &found);
    quiet_end(&before);
    return is_found ? found.dli_saddr : (void *)function_is_missing;
}

/* Changes with each call of this thread that is counted, also with one inside another. */
static uint64_t latest_call(void)
{
    const struct ledger_thread *record = this_thread->cells.record;
    return record
               ? __atomic_load_n(&record->since_ticks, __ATOMIC_RELAXED) + this_thread->nested_ticks
               : 0;
}

/* One call of a Fortran function. */
struct passing {
    void *real;
    call_site site;
    bool may_be_answered; /* by the binding; other libraries' pass all calls on */
    uint64_t latest, start_ticks;
};

HOT struct passing begin(void *reals[PROVIDERS_MAX], const char *name, const void *return_address,
                         bool is_rare)
{
    struct passing passing = {.site = provider_site(return_address)};
    void **real = &reals[site_provider(passing.site)];
    passing.real = __atomic_load_n(real, __ATOMIC_RELAXED);
    if (__builtin_expect(!passing.real, 0)) {
        passing.real = find_real(name, return_address);
        __atomic_store_n(real, passing.real, __ATOMIC_RELAXED);
    }
    passing.may_be_answered = is_rare && mpi_abi.kind == MPI_ABI_OPEN_MPI;
    if (passing.may_be_answered) {
        passing.latest = latest_call();
        passing.start_ticks = clock_ticks();
    }
    return passing;
}

HOT void end(const struct passing *passing, enum call_id id)
{
    if (!passing->may_be_answered || latest_call() != passing->latest)
        return;
    struct call call UNTIL_RETURN;
    call_begin(&call, id, passing->site);
    call.start = passing->start_ticks;
    call_end(&call, MPI_SUCCESS);
    if (id != CALL_Request_get_status)
        account_waited(&call);
    else if (call.thread)
        account_poll(&call); /* Open MPI always says that the request is incomplete */
}

/* `first`: the number of requests, if the function has one. */
#define WRAP(SYMBOL, NAME, IS_RARE, TYPES, PARAMETERS, ARGUMENTS)                             \
    EXPORT void SYMBOL PARAMETERS;                                                            \
    void SYMBOL PARAMETERS                                                                    \
    {                                                                                         \
        static void *reals[PROVIDERS_MAX];                                                    \
        struct passing passing = begin(reals, #SYMBOL, __builtin_return_address(0), IS_RARE); \
        ((void(*) TYPES)passing.real) ARGUMENTS;                                              \
        end(&passing, CALL_##NAME);                                                           \
    }

#define EVERY_NAME(NAME, LOWER, UPPER, ...)   \
    WRAP(mpi_##LOWER, NAME, __VA_ARGS__)      \
    WRAP(mpi_##LOWER##_, NAME, __VA_ARGS__)   \
    WRAP(mpi_##LOWER##__, NAME, __VA_ARGS__)  \
    WRAP(MPI_##UPPER, NAME, __VA_ARGS__)      \
    WRAP(pmpi_##LOWER, NAME, __VA_ARGS__)     \
    WRAP(pmpi_##LOWER##_, NAME, __VA_ARGS__)  \
    WRAP(pmpi_##LOWER##__, NAME, __VA_ARGS__) \
    WRAP(PMPI_##UPPER, NAME, __VA_ARGS__)     \
    WRAP(ompi_##LOWER##_f, NAME, __VA_ARGS__)

#define POINTERS_4 (void *, void *, void *, void *)
#define POINTERS_5 (void *, void *, void *, void *, void *)
#define POINTERS_6 (void *, void *, void *, void *, void *, void *)
#define PARAMETERS_4 (int *first, void *b, void *c, void *d)
#define PARAMETERS_5 (int *first, void *b, void *c, void *d, void *e)
#define PARAMETERS_6 (int *first, void *b, void *c, void *d, void *e, void *f)
#define WITH_4 POINTERS_4, PARAMETERS_4, (first, b, c, d)
#define WITH_5 POINTERS_5, PARAMETERS_5, (first, b, c, d, e)
#define WITH_6 POINTERS_6, PARAMETERS_6, (first, b, c, d, e, f)
#define HAS_NONE (*first == 0)

EVERY_NAME(Waitall, waitall, WAITALL, HAS_NONE, WITH_4)
EVERY_NAME(Waitany, waitany, WAITANY, HAS_NONE, WITH_5)
EVERY_NAME(Waitsome, waitsome, WAITSOME, HAS_NONE, WITH_6)
EVERY_NAME(Testall, testall, TESTALL, HAS_NONE, WITH_5)
EVERY_NAME(Testany, testany, TESTANY, HAS_NONE, WITH_6)
EVERY_NAME(Testsome, testsome, TESTSOME, HAS_NONE, WITH_6)
EVERY_NAME(Request_get_status, request_get_status, REQUEST_GET_STATUS, true, WITH_4)
