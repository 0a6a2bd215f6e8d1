/* The interface to a GPU vendor: whether its GPUs are used here, what they did, and the memory kind
 * of a buffer. Each vendor is a folder (src/cupti/ for NVIDIA) that defines one struct gpu_backend;
 * nothing else in src/gpu/ depends on a vendor.
 *
 * Unless stated otherwise, functions are called by the GPU thread (gpu.c) alone. It holds no lock
 * during the call: the vendor's library may block, and the job must not wait for us then. */
#ifndef COMMPROF_GPU_BACKEND_H
#define COMMPROF_GPU_BACKEND_H

#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One kernel, copy or memset that has ended. Times are on CLOCK_MONOTONIC. `name` is valid only
 * during the callback. */
struct gpu_event {
    int64_t start_ns, end_ns;
    uint64_t bytes;                   /* of a copy, of a memset */
    uint32_t blocks;                  /* in a kernel's grid; 0: not known */
    const char *name;                 /* of a kernel, mangled; NULL if it could not be read */
    uint32_t device, context, stream; /* the vendor's numbers */
    uint8_t kind;                     /* enum ledger_activity_kind */
    uint8_t copy;                     /* enum ledger_copy */
    uint8_t flags;                    /* enum ledger_activity_flags */
};

/* A stream by the vendor's numbers, as in events. */
struct gpu_stream {
    uint32_t context, number;
};

struct gpu_device_facts {
    char name[64], uuid[48];
    uint32_t sms; /* multiprocessors; 0: not known */
};

/* Readings of a device's counters and sensors, as in struct ledger_reading. */
struct gpu_reading {
    uint64_t nvlink_sent_bytes, nvlink_received_bytes, pcie_sent_bytes, pcie_received_bytes,
        memory_used_bytes;
    uint64_t memory_bytes; /* of the device; 0: not known */
    uint32_t clock_mhz, limits;
};
#define GPU_READING_NONE                                                                        \
    {                                                                                           \
        LEDGER_BYTES_UNKNOWN, LEDGER_BYTES_UNKNOWN, LEDGER_BYTES_UNKNOWN, LEDGER_BYTES_UNKNOWN, \
            LEDGER_BYTES_UNKNOWN, 0, 0, 0                                                       \
    }

/* The result of looking for the vendor's GPUs. */
enum gpu_presence {
    GPU_ABSENT, /* permanently: no driver on this machine */
    GPU_UNUSED, /* there may be GPUs; the process has none of the vendor's libraries open, or no
                   context */
    GPU_IN_USE,
};

enum gpu_armed {
    GPU_ARMED,
    GPU_ARM_LATER,   /* not yet: what we need may still be loaded */
    GPU_ARM_REFUSED, /* never in this process; `reason` says why, in one line */
};

/* The result of one collection. */
struct gpu_collected {
    uint64_t records, dropped, implausible;
    uint32_t clock_error_ns;   /* UINT32_MAX: unknown */
    int64_t complete_until_ns; /* all activities that began before this have been handed over,
                                  according to the vendor */
    uint64_t graph_launches; /* launched since the last collection while tracing was on; not all of
                                them are seen */
    bool is_foreign; /* another tool has taken the interface, or its records cannot be read: no more
                        will arrive */
};

typedef void (*gpu_take)(const struct gpu_event *event);

struct gpu_backend {
    const char *name; /* "CUDA" */

    /* Looks for GPUs without opening any library that the process has not opened already. */
    enum gpu_presence (*look)(void);

    /* Attaches to the vendor's tracing interface without tracing yet. Writes the facts "gpu.driver"
     * and "gpu.tracing_library" (ledger_fact). */
    enum gpu_armed (*arm)(char *reason, size_t reason_bytes);

    /* Starts or stops tracing; false: the interface refused, `reason` says why. */
    bool (*resume)(char *reason, size_t reason_bytes);
    void (*pause)(void);

    /* Hands over what has been recorded. `everything`: also what the interface still buffers, at
     * the end of a window. */
    struct gpu_collected (*collect)(gpu_take take, bool everything);

    /* When the earliest of the activities began that may not have been handed over; INT64_MAX:
     * there are none. May be NULL: not known. */
    int64_t (*uncollected_since_ns)(void);

    /* Any thread, after the last collection: about how many records are lost because nobody has
     * read them. May be NULL: none. */
    uint64_t (*unread)(void);

    void (*device_facts)(uint32_t device, struct gpu_device_facts *facts);

    /* A device's counters and sensors by its UUID; NULL: they cannot be read. And what they say
     * now: fields that are not known are left as they are. Both may be NULL. */
    void *(*find_sensors)(const char *uuid);
    void (*read_sensors)(void *sensors, struct gpu_reading *reading);

    /* Any thread, fast, without a lock of ours: the memory kind (enum ledger_memory_kind) of an
     * address; -1: unknown to the driver (no GPU memory). */
    int (*memory_kind)(const void *address);

    /* The job's thread, during its call that is given this stream (NULL: the default stream of the
     * current context): once the job has destroyed the stream, its handle is invalid or belongs to
     * another one. False: unknown. */
    bool (*find_stream)(void *handle, struct gpu_stream *stream);

    /* Any thread: whether the stream is now capturing launches into a graph instead of running
     * them. May be NULL: cannot be queried. */
    bool (*is_capturing)(void *stream);
};

/* Reports from a vendor's folder to the GPU side, allowed even before gpu_begin. */

/* Makes the GPU thread look for GPUs now, because something suggests one is in use (the first NCCL
 * call). Any thread; no lock, at most one system call. */
void gpu_wake(void);

/* Another client of the tracing interface (`to`: its name) begins, and has ended. Called by that
 * client's thread, inside its call. When gpu_yield returns, none of our calls into the interface is
 * in progress or will begin. Its wait is bounded. */
void gpu_yield(const char *to);
void gpu_unyield(void);

/* The vendors in this build, NULL-terminated. Tests put their own in. */
enum { GPU_BACKENDS_MOST = 4 };
extern const struct gpu_backend *gpu_backends[GPU_BACKENDS_MOST];

#endif
