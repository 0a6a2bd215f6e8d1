/* The wrappers of initialization and finalization, which begin and end the recording; and that of
 * MPI_Abort. Beginning and ending read and write files and allocate memory, so no signal is
 * delivered meanwhile (base/memory.h). */
#include "base/quiet.h"
#include "cost.h"
#include "functions.h"
#include "record/account.h"
#include "run/runtime.h"

static int level_of(int provided)
{
    int level = 0;
    while (level < 3 && provided >= mpi_abi.thread_levels[level + 1])
        level++;
    return level;
}

static int asked_level(void)
{
    int provided = 0;
    bool known = mpi_query.Query_thread && mpi_query.Query_thread(&provided) == MPI_SUCCESS;
    return known ? level_of(provided) : -1;
}

static int sessions_open;
static bool has_world;

static bool begins(call_site site)
{
    struct quiet before = quiet_begin();
    bool is_first = (site & SITE_JOB) && runtime_prepare();
    quiet_end(&before);
    return is_first;
}

static bool begins_a_world(call_site site)
{
    has_world |= site & SITE_JOB;
    return begins(site);
}

/* Does the look-ups and page faults of the first calls in advance: their delay could change the
 * order of messages that race. */
static void prepare_first_calls(call_site site)
{
    int64_t began_ns = clock_monotonic_ns();
    if (!thread_epoch)
        return;
    functions_resolve_program(site);
    ledger_touch();
    the_ledger.header->cost_init_ns += (uint64_t)(clock_monotonic_ns() - began_ns);
}

/* The first initialization begins the recording. MPI_Init after a session is counted like any call,
 * and adds MPI_COMM_WORLD. */
static void begun(const struct call *call, call_site site, bool first, int error)
{
    struct quiet before = quiet_begin();
    if (first && error == MPI_SUCCESS) {
        runtime_begin(call, asked_level(), NULL);
        prepare_first_calls(site);
    } else if (call->succeeded) {
        account_simple(call);
        runtime_add_world(asked_level());
    }
    quiet_end(&before);
}

BODY(Init, BY_HAND, INIT)
{
    bool first = begins_a_world(site);
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Init, site);
    int error = real(argc, argv);
    call_end(&call, error);
    begun(&call, site, first, error);
    return error;
}

BODY(Init_thread, BY_HAND, INIT_THREAD)
{
    bool first = begins_a_world(site);
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Init_thread, site);
    int error = real(argc, argv, required, provided);
    call_end(&call, error);
    begun(&call, site, first, error);
    return error;
}

/* A job may open and close several sessions. Recording begins with the first. It ends and is stored
 * when the last one is finalized, unless MPI_Init was called as well. Sessions opened after that
 * are not recorded. */

BODY(Session_init, BY_HAND, SESSION_INIT)
{
    bool first = begins(site);
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Session_init, site);
    int error = real(info, errhandler, session);
    call_end(&call, error);
    if (error == MPI_SUCCESS && (site & SITE_JOB))
        __atomic_add_fetch(&sessions_open, 1, __ATOMIC_RELAXED);
    struct quiet before = quiet_begin();
    if (first && error == MPI_SUCCESS)
        runtime_begin(&call, asked_level(), session);
    else
        account_simple(&call);
    quiet_end(&before);
    return error;
}

static void end_begin(void)
{
    struct quiet before = quiet_begin();
    runtime_end_begin(cost_per_call_ps);
    quiet_end(&before);
}

static void end(const struct call *call)
{
    struct quiet before = quiet_begin();
    runtime_end(call);
    quiet_end(&before);
}

static void end_if_last(const struct call *call, bool last)
{
    if (last)
        end(call);
    else
        account_simple(call);
}

BODY(Session_finalize, BY_HAND, SESSION_FINALIZE)
{
    bool last = (site & SITE_JOB) && __atomic_sub_fetch(&sessions_open, 1, __ATOMIC_RELAXED) == 0 &&
                !has_world;
    if (last)
        end_begin();
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Session_finalize, site);
    int error = real(session);
    call_end(&call, error);
    end_if_last(&call, last && error == MPI_SUCCESS);
    return error;
}

/* MPI_Finalize may call callbacks of the job (attributes of MPI_COMM_SELF). Their calls are nested
 * in this one. */
static int wrap_Finalize(call_site site, int (*real)(void))
{
    if (!(site & SITE_JOB))
        return real();
    end_begin();
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Finalize, site);
    int error = real();
    call_end(&call, error);
    end(&call);
    return error;
}

/* Usually does not return. */
BODY(Abort, BY_HAND, ABORT)
{
    struct quiet before = quiet_begin();
    if (site & SITE_JOB)
        runtime_aborted(errorcode);
    quiet_end(&before);
    return real(comm, errorcode);
}

EXPORT int MPI_Finalize(void);
int MPI_Finalize(void)
{
    call_site site = provider_site(__builtin_return_address(0));
    return wrap_Finalize(site, (int (*)(void))function_target(FUNCTION_Finalize, ENTRY_MPI, site));
}

EXPORT int PMPI_Finalize(void);
int PMPI_Finalize(void)
{
    call_site site = provider_site(__builtin_return_address(0));
    return wrap_Finalize(site, (int (*)(void))function_target(FUNCTION_Finalize, ENTRY_PMPI, site));
}

EXPORT_PLAIN(Init, BY_HAND, INIT)
EXPORT_PLAIN(Init_thread, BY_HAND, INIT_THREAD)
EXPORT_PLAIN(Session_init, BY_HAND, SESSION_INIT)
EXPORT_PLAIN(Session_finalize, BY_HAND, SESSION_FINALIZE)
EXPORT_PLAIN(Abort, BY_HAND, ABORT)
