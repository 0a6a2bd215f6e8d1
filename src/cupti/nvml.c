/* Functions are declared as in nvml.h, with its enumerations as int and its handles as void *. */
#include "nvml.h"

#include "nvml_abi.h"

#include <dlfcn.h>

static struct {
    int (*nvmlInit_v2)(void);
    int (*nvmlDeviceGetHandleByUUID)(const char *uuid, void **device);
    int (*nvmlDeviceGetFieldValues)(void *device, int count, struct nvml_field *fields);
    int (*nvmlDeviceGetMemoryInfo)(void *device, struct nvml_memory *memory);
    int (*nvmlDeviceGetClockInfo)(void *device, int clock, unsigned *mhz);
    int (*reasons)(void *device, unsigned long long *reasons);
} nvml;

static bool open_library(void)
{
    void *library =
        dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL); /* never closed, as the driver */
    if (!library)
        return false;
    *(void **)&nvml.nvmlInit_v2 = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml.nvmlDeviceGetHandleByUUID = dlsym(library, "nvmlDeviceGetHandleByUUID");
    *(void **)&nvml.nvmlDeviceGetFieldValues = dlsym(library, "nvmlDeviceGetFieldValues");
    *(void **)&nvml.nvmlDeviceGetMemoryInfo = dlsym(library, "nvmlDeviceGetMemoryInfo");
    *(void **)&nvml.nvmlDeviceGetClockInfo = dlsym(library, "nvmlDeviceGetClockInfo");
    *(void **)&nvml.reasons =
        dlsym(library, "nvmlDeviceGetCurrentClocksEventReasons"); /* from driver 535 on */
    if (!nvml.reasons)
        *(void **)&nvml.reasons = dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    return nvml.nvmlInit_v2 && nvml.nvmlDeviceGetHandleByUUID && nvml.nvmlInit_v2() == NVML_OK;
}

/* NULL: there is no such library, or it does not know this device. */
void *nvml_find_sensors(const char *uuid)
{
    static bool is_asked, is_open;
    void *device = NULL;
    if (!is_asked)
        is_open = open_library();
    is_asked = true;
    return is_open && *uuid && nvml.nvmlDeviceGetHandleByUUID(uuid, &device) == NVML_OK ? device
                                                                                        : NULL;
}

/* A counter of 32 bits may wrap between two readings. */
static uint64_t counter_of(const struct nvml_field *field)
{
    bool is_wide = field->type == NVML_UNSIGNED_LONG_LONG || field->type == NVML_UNSIGNED_LONG;
    return field->result == NVML_OK && is_wide ? field->value : LEDGER_BYTES_UNKNOWN;
}

static uint64_t bytes_of_kib(uint64_t kib)
{
    return kib <= UINT64_MAX >> 11 ? kib << 10 : LEDGER_BYTES_UNKNOWN;
}

static void read_counters(void *device, struct gpu_reading *reading)
{
    struct nvml_field fields[] = {
        {.field = NVML_FIELD_NVLINK_SENT, .scope = NVML_ALL_LINKS, .result = -1},
        {.field = NVML_FIELD_NVLINK_RECEIVED, .scope = NVML_ALL_LINKS, .result = -1},
        {.field = NVML_FIELD_PCIE_SENT, .result = -1},
        {.field = NVML_FIELD_PCIE_RECEIVED, .result = -1}};
    if (!nvml.nvmlDeviceGetFieldValues ||
        nvml.nvmlDeviceGetFieldValues(device, sizeof fields / sizeof *fields, fields) != NVML_OK)
        return;
    reading->nvlink_sent_bytes = bytes_of_kib(counter_of(&fields[0]));
    reading->nvlink_received_bytes = bytes_of_kib(counter_of(&fields[1]));
    reading->pcie_sent_bytes = counter_of(&fields[2]);
    reading->pcie_received_bytes = counter_of(&fields[3]);
}

static unsigned limits_of(unsigned long long reasons)
{
    unsigned limits = LEDGER_READING_KNOWN;
    bool is_hot = reasons & (NVML_SOFTWARE_THERMAL | NVML_HARDWARE_THERMAL);
    limits |= reasons & NVML_GPU_IDLE ? LEDGER_READING_IDLE : 0;
    limits |= reasons & NVML_POWER_CAP ? LEDGER_READING_POWER : 0;
    limits |= is_hot ? LEDGER_READING_HEAT : 0;
    limits |= reasons & NVML_POWER_BRAKE || (reasons & NVML_HARDWARE_SLOWDOWN && !is_hot)
                  ? LEDGER_READING_HARDWARE
                  : 0;
    return limits;
}

void nvml_read_sensors(void *device, struct gpu_reading *reading)
{
    struct nvml_memory memory;
    unsigned long long reasons;
    unsigned mhz;
    read_counters(device, reading);
    if (nvml.nvmlDeviceGetMemoryInfo && nvml.nvmlDeviceGetMemoryInfo(device, &memory) == NVML_OK) {
        reading->memory_bytes = memory.total_bytes;
        reading->memory_used_bytes = memory.used_bytes;
    }
    if (nvml.nvmlDeviceGetClockInfo &&
        nvml.nvmlDeviceGetClockInfo(device, NVML_SM_CLOCK, &mhz) == NVML_OK)
        reading->clock_mhz = mhz;
    if (nvml.reasons && nvml.reasons(device, &reasons) == NVML_OK)
        reading->limits = limits_of(reasons);
}
