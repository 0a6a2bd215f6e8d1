/* The wrappers around windows and files. Both are made on a communicator, and what is done through them counts on that one: its
 * members are theirs, and it is the name that the job knows. */
#include "functions.h"
#include "statuses.h"
#include "traffic.h"

#define MAKING_ON(NAME, SHAPE, FORMS)                                                            \
    BODY(NAME, MAKING, SHAPE)                                                                    \
    {                                                                                            \
        struct call call;                                                                        \
        call_begin(&call, CALL_##NAME, site);                                                    \
        int error = real(ARGUMENTS_##SHAPE);                                                     \
        call_end(&call, error);                                                                  \
        call_account(&call, traffic_none(&call, comm));                                          \
        if (call.succeeded && mpi_abi.known)                                                     \
            communicators_attach(communicators_key_of_window(mpi_handle_load(newwin, 0)), comm); \
        return error;                                                                            \
    }                                                                                            \
    EXPORT_##FORMS(NAME, MAKING, SHAPE)

/* A file's handle is a pointer in every ABI, whatever the width of the others. */
static mpi_handle file_at(const void *file)
{
    return *(const mpi_handle *)file;
}

BODY(File_open, BY_HAND, FILE_OPEN)
{
    struct call call;
    call_begin(&call, CALL_File_open, site);
    int error = real(comm, filename, amode, info, newfile);
    call_end(&call, error);
    call_account(&call, traffic_none(&call, comm));
    if (call.succeeded && mpi_abi.known)
        communicators_attach(communicators_key_of_file(file_at(newfile)), comm);
    return error;
}

/* As with communicators: the handle may be another thread's new window as soon as MPI has freed it, so it is detached before; where
 * there is no handle, MPI has something to say. */

BODY(Win_free, BY_HAND, WIN_FREE)
{
    struct call call;
    call_enter(&call, CALL_Win_free, site);
    bool has_handle = call.thread && mpi_abi.known && win;
    mpi_handle key = has_handle ? communicators_key_of_window(mpi_handle_load(win, 0)) : 0;
    struct communicator *communicator = has_handle ? communicators_detach(key) : NULL;
    call_start(&call);
    int error = real(win);
    call_end(&call, error);
    call_account(&call, traffic_on(communicator));
    communicators_detached(key, communicator, call.succeeded);
    return error;
}

BODY(File_close, BY_HAND, FILE_CLOSE)
{
    struct call call;
    call_enter(&call, CALL_File_close, site);
    bool has_handle = call.thread && mpi_abi.known && file;
    mpi_handle key = has_handle ? communicators_key_of_file(file_at(file)) : 0;
    struct communicator *communicator = has_handle ? communicators_detach(key) : NULL;
    call_start(&call);
    int error = real(file);
    call_end(&call, error);
    call_account(&call, traffic_on(communicator));
    communicators_detached(key, communicator, call.succeeded);
    return error;
}

/* The status alone says how much there was to read. */
#define READING(NAME, SHAPE, FORMS)                                                \
    BODY(NAME, READING, SHAPE)                                                     \
    {                                                                              \
        struct own_status ours;                                                    \
        struct call call;                                                          \
        status = enter_with_status(&call, CALL_##NAME, site, status, &ours);       \
        call_start(&call);                                                         \
        int error = real(ARGUMENTS_##SHAPE);                                       \
        call_end(&call, error);                                                    \
        call_account(&call, traffic_read(&call, arrival_of(&call, status), file)); \
        return error;                                                              \
    }                                                                              \
    EXPORT_##FORMS(NAME, READING, SHAPE)

#define OBJECT(NAME, SHAPE, FORMS) EXPORT_##FORMS(NAME, BY_HAND, SHAPE)
#include "expand.h"
