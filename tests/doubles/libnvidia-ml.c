/* Our double of libnvidia-ml.so.1: counters and sensors of the devices of our double of
 * libcuda.so.1. See README.md.
 *
 *     DOUBLE_NVML_INIT          what nvmlInit_v2 answers (0)
 *     DOUBLE_NVML_REASONS       why the clock is not the highest, a sum of nvmlClocksEventReason*
 *                               (0); it is 1200 MHz then, else 1980
 *     DOUBLE_NVML_UNSUPPORTED   what is answered NOT_SUPPORTED: words of nvlink, pcie, memory,
 *                               clock, reasons
 *
 * Compiled with -DOLD_NAMES it lacks a function that came with driver 535. NVLink carries 50 KiB
 * out and 25 KiB in per microsecond since the library was initialized, PCIe 10,000 and 5,000
 * bytes. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum { MOST_DEVICES = 8, CLOCK_SM = 1, UNSIGNED_LONG_LONG = 3 };
enum { NVLINK_SENT = 138, NVLINK_RECEIVED = 139, PCIE_SENT = 197, PCIE_RECEIVED = 198 };

struct field {
    unsigned field, scope;
    long long unix_us, latency_us;
    int type, result;
    unsigned long long value;
};
struct memory {
    unsigned long long total, available, used;
};

EXPORT long double_nvml_readings;
static pid_t initialized_by;
static int64_t began_us;
static char devices[MOST_DEVICES];

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000ll + now.tv_nsec / 1000;
}

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

static bool is_unsupported(const char *what)
{
    const char *words = getenv("DOUBLE_NVML_UNSUPPORTED");
    return words && strstr(words, what);
}

/* Stricter than the truth: a forked child may initialize it. Nobody shall call it there on the
 * job's behalf. */
static int state(const void *device)
{
    if (!initialized_by)
        return UNINITIALIZED;
    if (initialized_by != getpid()) {
        fprintf(stderr, "double of libnvidia-ml: called in a forked child\n");
        abort();
    }
    return device ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int nvmlInit_v2(void)
{
    int result = number_of("DOUBLE_NVML_INIT");
    if (result == SUCCESS && !initialized_by) {
        initialized_by = getpid();
        began_us = now_us();
    }
    return result;
}

/* As the double of libcuda names its devices. */
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    int result = state(uuid);
    for (int i = 0; result == SUCCESS && i < MOST_DEVICES; i++) {
        char own[48];
        int used = snprintf(own, sizeof own, "GPU-");
        for (int byte = 0; byte < 16; byte++)
            used += snprintf(own + used, sizeof own - (size_t)used, "%s%02x",
                             byte >= 4 && byte <= 10 && byte % 2 == 0 ? "-" : "",
                             (unsigned)(16 * i + byte) & 0xff);
        if (strcmp(uuid, own) == 0) {
            *device = &devices[i];
            return SUCCESS;
        }
    }
    return result == SUCCESS ? NOT_FOUND : result;
}

static void read_field(struct field *field)
{
    bool is_nvlink = field->field == NVLINK_SENT || field->field == NVLINK_RECEIVED;
    bool is_pcie = field->field == PCIE_SENT || field->field == PCIE_RECEIVED;
    unsigned long long us = (unsigned long long)(now_us() - began_us);
    field->result = NOT_SUPPORTED;
    if ((is_nvlink && (field->scope != UINT32_MAX || is_unsupported("nvlink"))) ||
        (is_pcie && is_unsupported("pcie")))
        return;
    if (!is_nvlink && !is_pcie)
        return;
    field->result = SUCCESS;
    field->type = UNSIGNED_LONG_LONG;
    field->value = us * (is_nvlink ? 50 : 10000);
    field->value /= field->field == NVLINK_RECEIVED || field->field == PCIE_RECEIVED ? 2 : 1;
}

EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields)
{
    int result = state(device);
    for (int i = 0; result == SUCCESS && i < count; i++)
        read_field(&fields[i]);
    return result;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    int result = state(device);
    if (result == SUCCESS && is_unsupported("memory"))
        return NOT_SUPPORTED;
    *memory = (struct memory){80000000000, 19000000000, 61000000000};
    return result;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz)
{
    int result = state(device);
    if (result == SUCCESS && (clock != CLOCK_SM || is_unsupported("clock")))
        return NOT_SUPPORTED;
    *mhz = number_of("DOUBLE_NVML_REASONS") ? 1200 : 1980;
    return result;
}

/* The last that is asked in a reading: programs await readings by their number. */
static int reasons_of(void *device, unsigned long long *reasons)
{
    __atomic_add_fetch(&double_nvml_readings, 1, __ATOMIC_RELEASE);
    int result = state(device);
    if (result == SUCCESS && is_unsupported("reasons"))
        return NOT_SUPPORTED;
    *reasons = (unsigned long long)number_of("DOUBLE_NVML_REASONS");
    return result;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    return reasons_of(device, reasons);
}

#ifndef OLD_NAMES
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
    return reasons_of(device, reasons);
}
#endif
