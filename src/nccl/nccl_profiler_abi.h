/* NCCL's interface to profiler plugins, as far as ours reads it: version 4 (NCCL 2.27) and version 5 (2.28 and later), which stay as they
 * are in every later NCCL. tests/abi/test_nccl_abi.py holds it against NCCL's own headers where they are at hand.
 *
 * Older versions do not tell how many ranks a communicator has. */
#ifndef COMMPROF_NCCL_PROFILER_ABI_H
#define COMMPROF_NCCL_PROFILER_ABI_H

#include "nccl_abi.h"

#include <stdbool.h>

/* What an event is of; a plugin says by a mask of them which it wants. */
enum nccl_event_type {
    NCCL_EVENT_GROUP = 1 << 0,
    NCCL_EVENT_COLLECTIVE = 1 << 1, /* as it is launched */
    NCCL_EVENT_MESSAGE = 1 << 2,
    NCCL_EVENT_COLLECTIVE_CALL = 1 << 9, /* as it is called */
    NCCL_EVENT_MESSAGE_CALL = 1 << 10,
};

struct nccl_event_v4 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            uint64_t sequence;
            const char *function; /* "AllReduce" */
            const void *send_buffer;
            void *receive_buffer;
            size_t count;
            int root;
            const char *datatype; /* "ncclFloat32" */
        } collective;
        struct {
            const char *function;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
        } message;
    };
};

struct nccl_event_v5 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *function;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool is_captured;
        } collective_call;
        struct {
            const char *function;
            size_t count;
            const char *datatype;
            void *stream;
            bool is_captured;
        } message_call;
    };
};

struct nccl_profiler_v4 {
    const char *name;
    nccl_result (*init)(void **context, int *mask, const char *name, uint64_t hash, int nodes, int nranks, int rank, void *log);
    nccl_result (*start)(void *context, void **handle, const struct nccl_event_v4 *event);
    nccl_result (*stop)(void *handle);
    nccl_result (*record_state)(void *handle, int state, void *details);
    nccl_result (*finalize)(void *context);
};

struct nccl_profiler_v5 {
    const char *name;
    nccl_result (*init)(void **context, uint64_t hash, int *mask, const char *name, int nodes, int nranks, int rank, void *log);
    nccl_result (*start)(void *context, void **handle, const struct nccl_event_v5 *event);
    nccl_result (*stop)(void *handle);
    nccl_result (*record_state)(void *handle, int state, void *details);
    nccl_result (*finalize)(void *context);
};

#endif
