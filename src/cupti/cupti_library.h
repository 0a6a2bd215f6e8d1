/* Selects the libcupti to use, and holds its functions.
 *
 * Two copies in one process disturb each other, and the copy that is loaded first serves everyone
 * who asks for it by name: an old one would break PyTorch, which brings its own. So the order is:
 * the user's choice; the copy in the process; none yet if a framework is about to load its own; the
 * copy beside the CUDA runtime in the process; by name, the copy for the driver's CUDA or for an
 * older one. */
#ifndef COMMPROF_CUPTI_LIBRARY_H
#define COMMPROF_CUPTI_LIBRARY_H

#include "gpu/backend.h"

enum cupti_result {
    CUPTI_SUCCESS = 0,
    CUPTI_NOT_INITIALIZED = 15,
    CUPTI_HAS_SUBSCRIBER = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
};

enum { CUPTI_FLUSH_FORCED = 1 };
enum {
    CUPTI_DEVICE_BUFFER_SIZE = 0,
    CUPTI_DEVICE_BUFFER_LIMIT = 2,
    CUPTI_DEVICE_BUFFERS_AT_FIRST = 6
}; /* attributes, each a size_t */
enum {
    CUPTI_FIRST_TO_BE_REFUSED = 27
}; /* CUDA 12.9: earlier versions crash if a request for a buffer is refused (release notes) */

/* The parameters of cuptiSubscribe_v2. */
struct cupti_subscriber {
    size_t struct_bytes;
    const char *name;
    char *present_name; /* name of the current holder */
    size_t present_bytes;
};

typedef void (*cupti_request)(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void (*cupti_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                               size_t valid_bytes);

/* The functions as in cupti_activity.h and cupti_callbacks.h, with enumerations as int and handles
 * as void *. */
struct cupti {
#define CUPTI_FUNCTION(NAME, ...) int (*NAME)(__VA_ARGS__);
#include "cupti_functions.def"
#undef CUPTI_FUNCTION
    uint32_t version;       /* 13 to 28: CUDA 11.0 to 12.9; from 13.0 on 130000 */
    int64_t least_flush_ns; /* minimum time between flushes; 0: any */
    char path[1024];
};

/* Opens libcupti and reads its version. GPU_ARM_LATER, GPU_ARM_REFUSED: `reason` says why. */
enum gpu_armed cupti_open(struct cupti *cupti, char *reason, size_t reason_bytes);

/* CUPTI's name of a result. */
const char *cupti_result_name(const struct cupti *cupti, int result);

/* The major CUDA version of a CUPTI version: 11, 12, 13; less: older. */
uint32_t cupti_cuda_major(uint32_t version);

/* Why this version is not used; NULL: it is used. */
const char *cupti_version_trap(uint32_t version);

#endif
