/* Readings of the counters and sensors of the process's devices (bytes over NVLink and PCIe, memory
 * in use, clock and what lowers it), taken once in COMMPROF_GPU_COLLECT_MS from the first activity
 * of a device on: struct ledger_reading. Called by the GPU thread alone. */
#ifndef COMMPROF_READINGS_H
#define COMMPROF_READINGS_H

#include "backend.h"

enum {
    READINGS_MOST = 4092
}; /* four chunks: a device for 68 minutes at one reading a second, before the log is thinned */

void readings_begin(const struct gpu_backend *backend);

/* Takes the readings that are due. `is_abandoned`: nothing may be written any more. */
void readings_take(int64_t now_ns, bool (*is_abandoned)(void));

#endif
