/* NVIDIA's GPUs, through the CUDA driver and CUPTI. Both libraries are found in the process; their
 * headers are not needed to build. */
#ifndef COMMPROF_CUPTI_BACKEND_H
#define COMMPROF_CUPTI_BACKEND_H

#include "gpu/backend.h"

extern const struct gpu_backend cupti_backend;

#endif
