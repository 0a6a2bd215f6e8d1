/* CUPTI's records of GPU activities, as far as we read them.
 *
 * A CUDA release may append fields to its records, and libcupti writes the newest form that it
 * knows. Existing fields keep their offsets: the fields below have the same ones in all forms from
 * CUDA 7.0 (CUPTI's API version 8) to 13.5 (130500), compared with NVIDIA's headers. So one build
 * reads all of them without a CUDA header. Only libcupti knows where the next record is. */
#ifndef COMMPROF_CUPTI_RECORDS_H
#define COMMPROF_CUPTI_RECORDS_H

#include "gpu/backend.h"

enum {
    CUPTI_OLDEST = 8,
    CUPTI_FIRST_WITH_GRAPHS =
        13, /* CUDA 11.0: records contain the graph node that they come from */
    CUPTI_NEWEST_KNOWN = 130599,
};

/* CUpti_ActivityKind. */
enum cupti_kind {
    CUPTI_MEMCPY = 1,
    CUPTI_MEMSET = 2,
    CUPTI_CONCURRENT_KERNEL = 10,
    CUPTI_MEMCPY2 = 22
};

struct cupti_kernel {
    uint32_t kind, cache_config;
    uint64_t configuration;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared_bytes, dynamic_shared_bytes;
    uint32_t local_bytes_per_thread, local_bytes, correlation;
    int64_t grid_id;
    const char *name; /* CUPTI's own, mangled */
    uint64_t unread[4];
    uint64_t graph_node; /* 0: not launched by a graph */
};

struct cupti_copy {
    uint32_t kind;
    uint8_t copy_kind, source_kind, destination_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint64_t unread[2];
    uint64_t graph_node;
};

/* CUPTI_MEMCPY2: between two devices. */
struct cupti_peer_copy {
    uint32_t kind;
    uint8_t copy_kind, source_kind, destination_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t source_device, source_context, destination_device, destination_context, correlation;
    uint64_t unread;
    uint64_t graph_node;
};

struct cupti_set {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint64_t unread[2];
    uint64_t graph_node;
};

_Static_assert(offsetof(struct cupti_kernel, start) == 16 &&
                   offsetof(struct cupti_kernel, device) == 40,
               "as CUpti_ActivityKernel4");
_Static_assert(offsetof(struct cupti_kernel, correlation) == 92 &&
                   offsetof(struct cupti_kernel, name) == 104,
               "as CUpti_ActivityKernel4");
_Static_assert(offsetof(struct cupti_kernel, grid) == 52, "as CUpti_ActivityKernel4");
_Static_assert(offsetof(struct cupti_kernel, graph_node) == 144, "as CUpti_ActivityKernel5");
_Static_assert(offsetof(struct cupti_copy, bytes) == 8 &&
                   offsetof(struct cupti_copy, correlation) == 44,
               "as CUpti_ActivityMemcpy");
_Static_assert(offsetof(struct cupti_copy, graph_node) == 64, "as CUpti_ActivityMemcpy3");
_Static_assert(offsetof(struct cupti_peer_copy, correlation) == 60, "as CUpti_ActivityMemcpy2");
_Static_assert(offsetof(struct cupti_peer_copy, graph_node) == 72, "as CUpti_ActivityMemcpyPtoP2");
_Static_assert(offsetof(struct cupti_set, correlation) == 44 &&
                   offsetof(struct cupti_set, graph_node) == 64,
               "as CUpti_ActivityMemset2");

/* Reads a record into an event. Times are still CUPTI's (nanoseconds of its clock), and the name is
 * CUPTI's pointer. False: not one of the four kinds. */
bool records_read(const void *record, uint32_t cupti_version, struct gpu_event *event);

#endif
