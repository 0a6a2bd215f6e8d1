/* The CUDA driver, libcuda.so.1, where the process has it open; it is never loaded for our sake.
 *
 * A process that has the driver open may still use no GPU: import torch opens it. It uses one when it has initialized the driver (cuInit) and
 * has a context. */
#ifndef COMMPROF_CUDA_DRIVER_H
#define COMMPROF_CUDA_DRIVER_H

#include "gpu/backend.h"

/* As gpu_backend's functions of these names. */
enum gpu_presence cuda_driver_look(void);
void cuda_driver_device_facts(uint32_t device, struct gpu_device_facts *facts);
int cuda_driver_place(const void *address);
bool cuda_driver_is_capturing(void *stream);

/* The context of a stream, of the default stream (NULL) that which is current in the calling thread; NULL: none. */
void *cuda_driver_context_of(void *stream);

/* The id that the driver gives to this stream alone, whatever handles it gives out again; false: not known, before CUDA 12. */
bool cuda_driver_stream_id(void *stream, uint64_t *id);

/* The newest CUDA that the driver supports, 13000 for 13.0; 0: not known. */
int cuda_driver_version(void);

uint32_t cuda_driver_devices(void);

#endif
