/* NCCL's interface to profiler plugins, as far as ours uses it: versions 4 (NCCL 2.27),
 * 5 (2.28) and 6 (2.29 and later). Each appends to the one before, so one declaration of an
 * event serves all. tests/abi/test_nccl_abi.py compares it with NCCL's own headers if they
 * are available.
 *
 * Older versions do not report how many ranks a communicator has. */
#ifndef COMMPROF_NCCL_PROFILER_ABI_H
#define COMMPROF_NCCL_PROFILER_ABI_H

#include "nccl_abi.h"

#include <stdbool.h>

/* The type of an event; a plugin requests types by a mask. */
enum nccl_event_type {
    NCCL_EVENT_GROUP = 1 << 0,
    NCCL_EVENT_COLLECTIVE = 1 << 1, /* at its launch */
    NCCL_EVENT_MESSAGE = 1 << 2,
    NCCL_EVENT_CHANNEL = 1 << 6, /* of a kernel: its begin; its end is reported by record_state */
    NCCL_EVENT_COLLECTIVE_CALL = 1 << 9, /* at the call */
    NCCL_EVENT_MESSAGE_CALL = 1 << 10,
    NCCL_EVENT_COPY_ENGINES = 1 << 12, /* at the launch of a collective without a kernel */
};

struct nccl_event {
    uint64_t type; /* version 4: one byte, the others are undefined */
    void *parent;  /* version 4: the group of a launched operation */
    int rank;
    union {
        struct {
            const char *function; /* "AllReduce" */
            size_t count;
            const char *datatype; /* "ncclFloat32" */
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
        struct {
            uint64_t sequence;
            const char *function;
            const void *send_buffer;
            void *receive_buffer;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol; /* "RING", "SIMPLE" */
            void *group;                      /* from version 5 on */
        } collective;
        struct {
            const char *function;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
            void *group; /* from version 5 on */
        } message;
        struct {
            uint8_t number;
            uint64_t gpu_ns;
        } channel;
        struct {
            uint64_t sequence;
            const char *function;
            const void *send_buffer;
            void *receive_buffer;
            size_t count;
            int root;
            const char *datatype;
        } copy_engines; /* version 6 */
    };
};

enum { NCCL_STATE_CHANNEL_END = 22 };
union nccl_state {
    struct {
        uint64_t gpu_ns;
    } channel;
};

typedef nccl_result nccl_init_v4(void **context, int *mask, const char *name, uint64_t hash,
                                 int nodes, int nranks, int rank, void *log);
typedef nccl_result nccl_init_v5(void **context, uint64_t hash, int *mask, const char *name,
                                 int nodes, int nranks, int rank, void *log);

struct nccl_profiler {
    const char *name;
    union {
        nccl_init_v4 *init_v4;
        nccl_init_v5 *init_v5, *init_v6;
    };
    nccl_result (*start)(void *context, void **handle, const struct nccl_event *event);
    nccl_result (*stop)(void *handle);
    nccl_result (*record_state)(void *handle, int state, void *details);
    nccl_result (*finalize)(void *context);
};

#endif
