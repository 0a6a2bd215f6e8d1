/* Which libcupti is used, and its functions.
 *
 * Two copies in one process disturb each other, and one that is loaded first serves all that ask for it by name: an old one would break
 * PyTorch, which comes with its own. So the order is: what the user says; the copy that the process has; none yet where a framework is about
 * to load its own; the one beside the CUDA runtime that the process has; the one of the driver's CUDA, or of an older one, by its name. */
#ifndef COMMPROF_CUPTI_LIBRARY_H
#define COMMPROF_CUPTI_LIBRARY_H

#include "gpu/backend.h"

enum cupti_result {
    CUPTI_SUCCESS = 0,
    CUPTI_NOT_INITIALIZED = 15,
    CUPTI_HAS_SUBSCRIBER = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
};

enum { CUPTI_FLUSH_FORCED = 1 };
enum { CUPTI_FIRST_TO_BE_REFUSED = 27 }; /* CUDA 12.9: before, CUPTI crashes where its request for a buffer is not met (release notes) */

/* What cuptiSubscribe_v2 fills in. */
struct cupti_subscriber {
    size_t struct_bytes;
    const char *name;
    char *present_name; /* of who holds the subscription */
    size_t present_bytes;
};

typedef void (*cupti_request)(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void (*cupti_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);

/* As libcupti has them (cupti_activity.h, cupti_callbacks.h), with its enumerations as int and its handles as void *. */
struct cupti {
#define CUPTI_FUNCTION(NAME, ...) int (*NAME)(__VA_ARGS__);
#include "cupti_functions.def"
#undef CUPTI_FUNCTION
    uint32_t version;       /* 13 to 28: CUDA 11.0 to 12.9; from 13.0 on 130000 */
    int64_t least_flush_ns; /* flushes must be so far apart; 0: they may come at any time */
    char path[1024];
};

/* Open it and read its version. GPU_ARM_LATER, GPU_ARM_REFUSED: why, in `reason`. */
enum gpu_armed cupti_open(struct cupti *cupti, char *reason, size_t reason_bytes);

/* What CUPTI calls one of its results. */
const char *cupti_result_name(const struct cupti *cupti, int result);

/* The version of CUDA that a version of CUPTI belongs to: 11, 12, 13; less: older. */
uint32_t cupti_cuda_major(uint32_t version);

/* Why this version is not used; NULL: it is. */
const char *cupti_version_trap(uint32_t version);

#endif
