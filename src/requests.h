/* Requests in flight: when each operation started, what it carries, and how long the job was blocked on it.
 *
 * A request is tracked when a nonblocking call returns it, and completed when a Wait or Test form says so. Handles are not
 * unique in flight (both Open MPI and MPICH give the same one to several small sends that are already done), so the table is
 * a multiset. A persistent request stays until it is freed and is active between Start and completion. */
#ifndef COMMPROF_REQUESTS_H
#define COMMPROF_REQUESTS_H

#include "communicators.h"

enum request_flags {
    REQUEST_RECEIVE = 1,    /* what arrived is known only when it completes */
    REQUEST_EXCHANGE = 8,   /* sends, and receives what the status says (Isendrecv) */
    REQUEST_INCOMING = 16,  /* the peer is known and sends (partitioned receive) */
    REQUEST_PERSISTENT = 2, /* stays after completion */
    REQUEST_ACTIVE = 4,     /* started and not completed */
    REQUEST_KEPT = 32,      /* has a sample, not a communicator */
};

struct request {
    uintptr_t handle; /* REQUEST_EMPTY, REQUEST_BUSY, or the request's */
    uint64_t start_ticks;
    uint64_t bytes;
    uint64_t volume_bytes;
    uint64_t blocked_ticks;
    union {
        struct communicator *communicator; /* of a receive: to tell the source's world rank */
        struct ledger_sample *sample;      /* of a nonblocking collective (REQUEST_KEPT): it is finished when the request is */
    };
    int32_t peer; /* world rank a message goes to, or should come from; PEER_NONE, LEDGER_PEER_ANY */
    uint16_t call;
    uint16_t slot; /* the communicator's number in the ledger */
    uint16_t flags;
    uint8_t place; /* of its buffers, as in struct ledger_cell */
    uint8_t reserved;
    uint32_t charged; /* low bits of the end of the call that was last charged with blocking on it */
};

/* `concurrent`: threads may call at the same time (MPI_THREAD_MULTIPLE). False when out of memory. */
bool requests_begin(bool concurrent);

/* Enter a request. False when the table is full: its completion will not be seen. */
bool requests_track(mpi_handle handle, const struct request *request);

/* What the call that made an active request has said of it; false if there is none with this handle. A look while other threads complete
 * requests: it may be of another one then. */
struct announced {
    uint64_t bytes;
    int32_t peer;
    uint16_t call, slot;
};
bool requests_look(mpi_handle handle, struct announced *announced);

/* A persistent request starts. Returns false for handles that are not tracked. */
bool requests_start(mpi_handle handle, uint64_t start_ticks);

/* Add time spent in Wait and Test calls, the last of which ended at end_ticks, that did not complete this request; no more than has
 * passed since it started. Of several with the same handle (they are done already, whatever the calls were waiting for) one is
 * charged. */
void requests_blocked(mpi_handle handle, uint64_t blocked_ticks, uint64_t end_ticks);

/* Take out an active request that was completed by a call which ended at end_ticks (a persistent one stays, inactive) and give a
 * copy of it; false if there is none with this handle. One that started later is passed over: another thread was given the same
 * handle anew before this one could say that it was done with it. Where there are no other threads, the counter has gone backwards: it
 * counts, as started at end_ticks. */
bool requests_complete(mpi_handle handle, uint64_t end_ticks, struct request *completed);

/* MPI_Request_free: the request goes, and a copy of it is given; if it was active, its completion will not be seen. */
bool requests_forget(mpi_handle handle, struct request *forgotten);

#endif
