/* libcuda.so.1; see stub_cupti.h. */
#include "stub_cupti.h"

#include <stdio.h>
#include <string.h>

struct stub_cuda stub_cuda = {.version = 13000, .init_result = 3, .devices = 2};

int cuDriverGetVersion(int *version)
{
    *version = stub_cuda.version;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    if (stub_cuda.init_result == 0)
        *count = stub_cuda.devices;
    return stub_cuda.init_result;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return stub_cuda.init_result ? stub_cuda.init_result : ordinal < stub_cuda.devices ? 0 : 101;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    snprintf(name, (size_t)bytes, "Stub %d", device);
    return stub_cuda.init_result;
}

int cuDeviceGetUuid(unsigned char *uuid, int device)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(16 * device + i);
    return stub_cuda.init_result;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    int result = cuDeviceGetUuid(uuid, device);
    uuid[0] = stub_cuda.is_mig ? 0xff : uuid[0];
    return result;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = stub_cuda.is_active && device == stub_cuda.devices - 1;
    return stub_cuda.init_result;
}

int cuCtxGetCurrent(void **context)
{
    *context = stub_cuda.context;
    return stub_cuda.init_result;
}

int cuStreamGetId(void *stream, uint64_t *id)
{
    *id = stub_cuda.stream_id;
    return stream && stub_cuda.stream_id ? 0 : 801;
}

int cuPointerGetAttributes(unsigned count, const int *attributes, void **values, uint64_t address)
{
    for (unsigned i = 0; i < count; i++)
        *(unsigned *)values[i] = attributes[i] == 2   ? stub_cuda.memory_type
                                 : attributes[i] == 8 ? stub_cuda.is_managed
                                                      : 0;
    return address ? stub_cuda.init_result : 1;
}
