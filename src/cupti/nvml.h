/* Counters and sensors of NVIDIA's devices, by the driver's management library (NVML,
 * libnvidia-ml.so.1). Called by the GPU thread alone.
 *
 * Only functions that read are called. The library counts its users: it stays initialized for us
 * after the job has shut it down. */
#ifndef COMMPROF_NVML_H
#define COMMPROF_NVML_H

#include "gpu/backend.h"

/* Like the functions of gpu_backend. */
void *nvml_find_sensors(const char *uuid);
void nvml_read_sensors(void *sensors, struct gpu_reading *reading);

#endif
