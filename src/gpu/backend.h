/* What the GPU side needs of a vendor: whether its GPUs are used here, what they did, and where a buffer lies. A vendor is a folder
 * (src/cupti/ for NVIDIA) that gives one of these; everything else in src/gpu/ knows no vendor.
 *
 * Unless it says otherwise a function is called by the GPU thread of ours (gpu.c) alone, which holds no lock meanwhile: the vendor's
 * library may block, and nothing of the job waits for us then. */
#ifndef COMMPROF_GPU_BACKEND_H
#define COMMPROF_GPU_BACKEND_H

#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One kernel, copy or memset that has ended. Times are on CLOCK_MONOTONIC. `name` is good during the call that hands it over. */
struct gpu_event {
    int64_t start_ns, end_ns;
    uint64_t bytes;                   /* of a copy, of a memset */
    const char *name;                 /* of a kernel, mangled; NULL where it could not be read */
    uint32_t device, context, stream; /* the vendor's numbers */
    uint32_t correlation;             /* of the call that launched it; 0: not known */
    uint8_t kind;                     /* enum ledger_activity_kind */
    uint8_t copy;                     /* enum ledger_copy */
    uint8_t flags;                    /* enum ledger_activity_flags */
};

/* A stream as events name it: the vendor's numbers. */
struct gpu_stream {
    uint32_t context, number;
};

struct gpu_device_facts {
    char name[64], uuid[48];
};

/* What a look for the vendor's GPUs has found. */
enum gpu_presence {
    GPU_ABSENT, /* and will not come: no driver on this machine */
    GPU_UNUSED, /* there may be GPUs; the process has none of the vendor's libraries open, or no context */
    GPU_IN_USE,
};

enum gpu_armed {
    GPU_ARMED,
    GPU_ARM_LATER,   /* not yet: what we need may still be loaded */
    GPU_ARM_REFUSED, /* never in this process; `reason` says why, in one line */
};

/* How a collection went. */
struct gpu_collected {
    uint64_t records, dropped, implausible;
    uint32_t clock_error_ns;   /* UINT32_MAX: not known */
    int64_t complete_until_ns; /* all activities that began before this have been handed over, as far as the vendor tells */
    bool is_foreign;           /* another tool has taken the interface, or its records cannot be read: nothing will come */
};

typedef void (*gpu_take)(const struct gpu_event *event);

struct gpu_backend {
    const char *name; /* "CUDA" */

    /* Look, without opening anything that is not open in the process already. */
    enum gpu_presence (*look)(void);

    /* Attach to the vendor's tracing interface; nothing is traced yet. Facts are written (ledger_fact "gpu.driver",
     * "gpu.tracing_library"). */
    enum gpu_armed (*arm)(char *reason, size_t reason_bytes);

    /* Trace from now on, or stop it; false: the interface refused, `reason` says why. */
    bool (*resume)(char *reason, size_t reason_bytes);
    void (*pause)(void);

    /* Hand over what has been recorded. `everything`: also what the interface holds back, at the end of a window. */
    struct gpu_collected (*collect)(gpu_take take, bool everything);

    /* Any thread, when nothing will be collected any more: how many records are lost, about, because nobody has read them. NULL: none. */
    uint64_t (*unread)(void);

    void (*device_facts)(uint32_t device, struct gpu_device_facts *facts);

    /* Any thread, fast, without a lock of ours: enum ledger_place of an address; -1: the driver did not say (no GPU memory, then). */
    int (*place)(const void *address);

    /* The job's thread, during its call that is given this stream (NULL: the default one of the current context): once the job has
     * destroyed it, the handle is invalid or another stream's. False: not known. */
    bool (*find_stream)(void *handle, struct gpu_stream *stream);

    /* Any thread: whether what is launched on a stream is captured into a graph now, rather than carried out. NULL: it cannot be told. */
    bool (*is_capturing)(void *stream);
};

/* The vendors that this build has, NULL-terminated. Tests put their own in. */
enum { GPU_BACKENDS_MOST = 4 };
extern const struct gpu_backend *gpu_backends[GPU_BACKENDS_MOST];

#endif
