/* NVIDIA's GPUs, by the CUDA driver and CUPTI, whose libraries are found in the process; no header of theirs is needed to build. */
#ifndef COMMPROF_CUPTI_BACKEND_H
#define COMMPROF_CUPTI_BACKEND_H

#include "gpu/backend.h"

extern const struct gpu_backend cupti_backend;

#endif
