/* Reports of the GPU thread to a library of collectives (src/nccl/) about communication kernels.
 * src/gpu/ does not depend on that library: whoever wants the reports defines gpu_observer. */
#ifndef COMMPROF_GPU_OBSERVER_H
#define COMMPROF_GPU_OBSERVER_H

#include "backend.h"

/* Shorter gaps on a device need not be reported. */
enum { GPU_IDLE_NS = 50000 };

/* All functions are called by the GPU thread. */
struct gpu_observer {
    /* Tracing begins, or ends. */
    void (*follow)(bool followed);

    /* A communication kernel is settled; kernels of one stream are reported in the order in which
     * they began. Returns the slot of the kernel's communicator, 0 if unknown. */
    unsigned (*kernel)(const struct gpu_event *kernel);

    /* A device was idle from `from_ns` to `until_ns`. All activities that began before have been
     * handed over. */
    void (*idle)(uint32_t device, int64_t from_ns, int64_t until_ns);

    /* A collection has ended. */
    void (*collected)(void);

    /* Tracing was off, or records were lost, up to until_ns: kernels of operations launched before
     * may be missing. */
    void (*untraced)(int64_t until_ns);
};

/* Tests put their own in. */
extern const struct gpu_observer *gpu_observer;

#endif
