/* Recognizes, by name, kernels that move data between ranks: those of NCCL and of other
 * communication libraries. */
#ifndef COMMPROF_GPU_COMMUNICATION_H
#define COMMPROF_GPU_COMMUNICATION_H

#include <stdbool.h>

/* `name` comes from the GPU's tracing interface: mangled (Itanium C++ ABI), or plain, as in C and
 * Triton. */
bool communication_has_kernel(const char *name);

/* Whether NCCL launches this kernel. */
bool communication_is_nccls(const char *name);

#endif
