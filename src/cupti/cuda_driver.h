/* The CUDA driver, libcuda.so.1, if the process has opened it; we never load it.
 *
 * Opening the driver does not mean using a GPU: import torch opens it. A process uses a GPU once it
 * has initialized the driver (cuInit) and has a context. */
#ifndef COMMPROF_CUDA_DRIVER_H
#define COMMPROF_CUDA_DRIVER_H

#include "gpu/backend.h"

/* Like the functions of these names in gpu_backend. */
enum gpu_presence cuda_driver_look(void);
void cuda_driver_device_facts(uint32_t device, struct gpu_device_facts *facts);
int cuda_driver_memory_kind(const void *address);
bool cuda_driver_is_capturing(void *stream);

/* The context of a stream; for the default stream (NULL), the current context of the calling
 * thread. NULL: none. */
void *cuda_driver_context_of(void *stream);

/* The driver's id of this stream, which is unique even if its handle is reused; false: unknown,
 * before CUDA 12. */
bool cuda_driver_stream_id(void *stream, uint64_t *id);

/* From now on calls of this thread do not invalidate captures of other threads. While a thread
 * captures in global mode, the driver forbids potentially unsafe calls (allocations, for one) to
 * all threads, and such a call ends the capture; threads in relaxed mode are exempt. */
void cuda_driver_spare_captures(void);

/* The newest CUDA version that the driver supports, 13000 for 13.0; 0: unknown. */
int cuda_driver_version(void);

uint32_t cuda_driver_devices(void);

#endif
