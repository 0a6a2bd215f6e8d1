/* Functions are declared as in cuda.h, with its enumerations as int and its handles as void *. */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CUDA_SUCCESS = 0 };
enum { CAPTURE_RELAXED = 2 };             /* CU_STREAM_CAPTURE_MODE_RELAXED */
enum { MULTIPROCESSOR_COUNT = 16 };       /* CU_DEVICE_ATTRIBUTE_* */
enum { MEMORY_TYPE = 2, IS_MANAGED = 8 }; /* CU_POINTER_ATTRIBUTE_* */
enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 };

struct uuid {
    unsigned char bytes[16];
};

static struct {
    int (*cuDriverGetVersion)(int *version);
    int (*cuDeviceGetCount)(int *count);
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDeviceGetName)(char *name, int bytes, int device);
    int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
    int (*cuDeviceGetUuid)(struct uuid *uuid,
                           int device); /* of the whole GPU, also of a MIG instance */
    int (*cuDeviceGetUuid_v2)(struct uuid *uuid,
                              int device); /* a MIG instance's own; NULL before CUDA 11.4 */
    int (*cuDevicePrimaryCtxGetState)(int device, unsigned *flags, int *active);
    int (*cuCtxGetCurrent)(void **context);
    int (*cuStreamIsCapturing)(void *stream, int *status); /* NULL before CUDA 10 */
    int (*cuStreamGetCtx)(void *stream, void **context);   /* NULL before CUDA 9.2 */
    int (*cuStreamGetId)(void *stream, uint64_t *id);      /* NULL before CUDA 12 */
    int (*cuThreadExchangeStreamCaptureMode)(int *mode);   /* NULL before CUDA 10.1 */
    int (*cuPointerGetAttributes)(unsigned count, const int *attributes, void **values,
                                  uint64_t address);
} driver;

static bool has_driver;
static bool has_seen_context; /* possibly not a device's primary context: such a context is visible
                                 only from its own threads */

static bool open_driver(void)
{
    if (has_driver)
        return true;
    void *library = dlopen(
        "libcuda.so.1",
        RTLD_LAZY | RTLD_NOLOAD); /* never closed: the driver must stay loaded as long as we are */
    if (!library)
        return false;
    *(void **)&driver.cuDriverGetVersion = dlsym(library, "cuDriverGetVersion");
    *(void **)&driver.cuDeviceGetCount = dlsym(library, "cuDeviceGetCount");
    *(void **)&driver.cuDeviceGet = dlsym(library, "cuDeviceGet");
    *(void **)&driver.cuDeviceGetName = dlsym(library, "cuDeviceGetName");
    *(void **)&driver.cuDeviceGetAttribute = dlsym(library, "cuDeviceGetAttribute");
    *(void **)&driver.cuDeviceGetUuid = dlsym(library, "cuDeviceGetUuid");
    *(void **)&driver.cuDeviceGetUuid_v2 = dlsym(library, "cuDeviceGetUuid_v2");
    *(void **)&driver.cuDevicePrimaryCtxGetState = dlsym(library, "cuDevicePrimaryCtxGetState");
    *(void **)&driver.cuCtxGetCurrent = dlsym(library, "cuCtxGetCurrent");
    *(void **)&driver.cuStreamIsCapturing = dlsym(library, "cuStreamIsCapturing");
    *(void **)&driver.cuStreamGetCtx = dlsym(library, "cuStreamGetCtx");
    *(void **)&driver.cuStreamGetId = dlsym(library, "cuStreamGetId");
    *(void **)&driver.cuThreadExchangeStreamCaptureMode =
        dlsym(library, "cuThreadExchangeStreamCaptureMode");
    *(void **)&driver.cuPointerGetAttributes = dlsym(library, "cuPointerGetAttributes");
    bool has_all = driver.cuDriverGetVersion && driver.cuDeviceGetCount && driver.cuDeviceGet &&
                   driver.cuDeviceGetName &&
                   (driver.cuDeviceGetUuid || driver.cuDeviceGetUuid_v2) &&
                   driver.cuDevicePrimaryCtxGetState && driver.cuCtxGetCurrent &&
                   driver.cuPointerGetAttributes;
    __atomic_store_n(&has_driver, has_all, __ATOMIC_RELEASE);
    return has_all;
}

static bool is_open(void)
{
    return __atomic_load_n(&has_driver, __ATOMIC_ACQUIRE);
}

/* Windows Subsystem for Linux has only /dev/dxg. */
static bool is_installed(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 ||
           access("/proc/driver/nvidia/version", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

uint32_t cuda_driver_devices(void)
{
    int count = 0; /* stays 0 if the job has not called cuInit: CUDA_ERROR_NOT_INITIALIZED */
    return is_open() && driver.cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0
               ? (uint32_t)count
               : 0;
}

static bool has_primary_context(int ordinal)
{
    int device, active = 0;
    unsigned flags;
    return driver.cuDeviceGet(&device, ordinal) == CUDA_SUCCESS &&
           driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

static void *current_context(void)
{
    void *context = NULL;
    if (!is_open() || driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
        return NULL;
    __atomic_store_n(&has_seen_context, true, __ATOMIC_RELAXED);
    return context;
}

enum gpu_presence cuda_driver_look(void)
{
    if (!open_driver())
        return is_installed() ? GPU_UNUSED : GPU_ABSENT;
    if (__atomic_load_n(&has_seen_context, __ATOMIC_RELAXED))
        return GPU_IN_USE;
    int devices = (int)cuda_driver_devices();
    for (int i = 0; i < devices; i++)
        if (has_primary_context(i))
            return GPU_IN_USE;
    return current_context() ? GPU_IN_USE : GPU_UNUSED;
}

/* The calling thread may have another context current: NCCL itself makes each communicator's device
 * current. Streams of green contexts have none. */
void *cuda_driver_context_of(void *stream)
{
    void *context = NULL;
    bool is_known = stream && is_open() && driver.cuStreamGetCtx &&
                    driver.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS;
    return is_known ? context : current_context();
}

bool cuda_driver_stream_id(void *stream, uint64_t *id)
{
    return is_open() && driver.cuStreamGetId && driver.cuStreamGetId(stream, id) == CUDA_SUCCESS;
}

/* A query that fails is for an invalidated capture, or for the default stream while another
 * captures: launches are then refused. */
bool cuda_driver_is_capturing(void *stream)
{
    int status = 0;
    return is_open() && driver.cuStreamIsCapturing &&
           driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != 0;
}

void cuda_driver_spare_captures(void)
{
    int mode = CAPTURE_RELAXED;
    if (is_open() && driver.cuThreadExchangeStreamCaptureMode)
        driver.cuThreadExchangeStreamCaptureMode(&mode);
}

int cuda_driver_version(void)
{
    int version = 0;
    return is_open() && driver.cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : 0;
}

/* Writes it as nvidia-smi does. */
static void write_uuid(const char *prefix, const struct uuid *uuid, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "%s", prefix);
    for (unsigned i = 0; i < sizeof uuid->bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%02x",
                                 i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "", uuid->bytes[i]);
}

/* On a MIG instance the two versions of the function differ, and its name has the profile: "NVIDIA
 * H100 80GB HBM3 MIG 1g.10gb". */
static void find_uuid(int device, struct gpu_device_facts *facts)
{
    struct uuid whole, own;
    bool has_whole =
        driver.cuDeviceGetUuid && driver.cuDeviceGetUuid(&whole, device) == CUDA_SUCCESS;
    bool has_own =
        driver.cuDeviceGetUuid_v2 && driver.cuDeviceGetUuid_v2(&own, device) == CUDA_SUCCESS;
    bool is_instance = has_own && (strstr(facts->name, " MIG ") ||
                                   (has_whole && memcmp(&whole, &own, sizeof own) != 0));
    if (has_own || has_whole)
        write_uuid(is_instance ? "MIG-" : "GPU-", has_own ? &own : &whole, facts->uuid,
                   sizeof facts->uuid);
}

void cuda_driver_device_facts(uint32_t ordinal, struct gpu_device_facts *facts)
{
    int device, sms = 0;
    memset(facts, 0, sizeof *facts);
    if (!is_open() || driver.cuDeviceGet(&device, (int)ordinal) != CUDA_SUCCESS)
        return;
    if (driver.cuDeviceGetName(facts->name, (int)sizeof facts->name - 1, device) != CUDA_SUCCESS)
        facts->name[0] = '\0';
    if (driver.cuDeviceGetAttribute &&
        driver.cuDeviceGetAttribute(&sms, MULTIPROCESSOR_COUNT, device) == CUDA_SUCCESS && sms > 0)
        facts->sms = (uint32_t)sms;
    find_uuid(device, facts);
}

/* For an unknown address, this driver call succeeds with all attributes 0, or fails in other
 * versions (CUDA_ERROR_INVALID_VALUE). The runtime's cudaPointerGetAttributes is not used because
 * it might create a context. */
int cuda_driver_memory_kind(const void *address)
{
    static const int ATTRIBUTES[] = {MEMORY_TYPE, IS_MANAGED};
    unsigned type = 0, is_managed = 0;
    void *values[] = {&type, &is_managed};
    if (!is_open() ||
        driver.cuPointerGetAttributes(2, ATTRIBUTES, values, (uintptr_t)address) != CUDA_SUCCESS)
        return -1;
    if (is_managed || type == MEMORY_UNIFIED)
        return LEDGER_MANAGED;
    return type == MEMORY_DEVICE || type == MEMORY_ARRAY ? LEDGER_DEVICE
           : type == MEMORY_HOST                         ? LEDGER_PINNED
                                                         : -1;
}
