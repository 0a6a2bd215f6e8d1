/* The wrappers around windows and files. Both are created on a communicator, and operations on them
 * count on that communicator: it has the same members, and the job knows its name. */
#include "functions.h"
#include "record/account.h"
#include "record/announce.h"
#include "record/signatures.h"
#include "statuses.h"

/* The keys of the objects whose handles these pointers point to; 0 for NULL, which MPI reports as
 * an error. */

static mpi_handle window_key(const void *win)
{
    return win ? communicators_key_of_window(mpi_handle_load(win, 0)) : 0;
}

/* A file's handle is a pointer in every ABI, even where other handles are 4 bytes wide. */
static mpi_handle file_key(const void *file)
{
    return file ? communicators_key_of_file(*(const mpi_handle *)file) : 0;
}

#define MAKING_ON(NAME, SHAPE, FORMS)                                     \
    BODY(NAME, MAKING, SHAPE)                                             \
    {                                                                     \
        struct call call UNTIL_RETURN;                                    \
        call_enter(&call, CALL_##NAME, site);                             \
        announce_collective(&call, comm, 0);                              \
        call_start(&call);                                                \
        int error = real(ARGUMENTS_##SHAPE);                              \
        call_end(&call, error);                                           \
        account_call(&call, traffic_none(&call, comm));                   \
        if (mpi_abi.known)                                                \
            communicators_attach(call.succeeded ? KEY_##SHAPE : 0, comm); \
        return error;                                                     \
    }                                                                     \
    EXPORT_##FORMS(NAME, MAKING, SHAPE)

/* As with communicators, the handle is detached before the call: once MPI has freed it, it may be
 * another thread's new object. */
#define ENDING(NAME, SHAPE, FORMS)                                                  \
    BODY(NAME, ENDING, SHAPE)                                                       \
    {                                                                               \
        struct call call UNTIL_RETURN;                                              \
        call_enter(&call, CALL_##NAME, site);                                       \
        mpi_handle key = call.thread && mpi_abi.known ? KEY_##SHAPE : 0;            \
        announce_on_object(&call, key);                                             \
        struct communicator *communicator = key ? communicators_detach(key) : NULL; \
        call_start(&call);                                                          \
        int error = real(ARGUMENTS_##SHAPE);                                        \
        call_end(&call, error);                                                     \
        account_call(&call, traffic_on(communicator));                              \
        communicators_detached(key, communicator, call.succeeded);                  \
        return error;                                                               \
    }                                                                               \
    EXPORT_##FORMS(NAME, ENDING, SHAPE)

/* Only the status says how much was read. */
#define READING(NAME, SHAPE, FORMS)                                                \
    BODY(NAME, READING, SHAPE)                                                     \
    {                                                                              \
        struct own_status ours;                                                    \
        struct call call UNTIL_RETURN;                                             \
        status = enter_with_status(&call, CALL_##NAME, site, status, &ours);       \
        ANNOUNCE_FILE;                                                             \
        call_start(&call);                                                         \
        int error = real(ARGUMENTS_##SHAPE);                                       \
        call_end(&call, error);                                                    \
        struct traffic traffic =                                                   \
            traffic_at(buf, traffic_read(&call, arrival_of(&call, status), file)); \
        struct ledger_sample *sample = account_call(&call, traffic);               \
        STORE_SIGNATURE(SHAPE);                                                    \
        return error;                                                              \
    }                                                                              \
    EXPORT_##FORMS(NAME, READING, SHAPE)

#include "expand.h"
