/* Which kernels move data between ranks: NCCL's and other libraries', by their names. */
#ifndef COMMPROF_GPU_COMMUNICATION_H
#define COMMPROF_GPU_COMMUNICATION_H

#include <stdbool.h>

/* `name` as the GPU's tracing interface gives it: mangled (Itanium C++ ABI), or as it is in C and in Triton. */
bool communication_has_kernel(const char *name);

/* Whether it is one of those that NCCL launches. */
bool communication_is_nccls(const char *name);

#endif
