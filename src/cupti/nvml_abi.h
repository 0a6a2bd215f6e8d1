/* The part of NVIDIA's management library (NVML) that we use, as in nvml.h of CUDA 11.8 to 13.4
 * (tests/abi/test_nvml.py compares). */
#ifndef COMMPROF_NVML_ABI_H
#define COMMPROF_NVML_ABI_H

#include <stdint.h>

enum { NVML_OK = 0 };
enum { NVML_SM_CLOCK = 1 }; /* nvmlClockType_t */

/* Fields of nvmlDeviceGetFieldValues. */
enum {
    NVML_FIELD_NVLINK_SENT = 138, /* NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX: KiB */
    NVML_FIELD_NVLINK_RECEIVED = 139,
    NVML_FIELD_PCIE_SENT = 197, /* NVML_FI_DEV_PCIE_COUNT_TX_BYTES: bytes; from driver 555 on */
    NVML_FIELD_PCIE_RECEIVED = 198,
};
#define NVML_ALL_LINKS UINT32_MAX /* scope of the fields of NVLink */

/* nvmlValueType_t, those of 64 bits. */
enum { NVML_UNSIGNED_LONG = 2, NVML_UNSIGNED_LONG_LONG = 3 };

struct nvml_field {
    uint32_t field, scope;
    int64_t unix_us, latency_us;
    uint32_t type;
    int32_t result;
    uint64_t value;
};

struct nvml_memory {
    uint64_t total_bytes, free_bytes, used_bytes;
};

/* nvmlClocksEventReason*, before CUDA 12.2 nvmlClocksThrottleReason*: why the clock is not the
 * highest. */
enum {
    NVML_GPU_IDLE = 0x1,
    NVML_POWER_CAP = 0x4,
    NVML_HARDWARE_SLOWDOWN = 0x8, /* also set with the next but one and its successor */
    NVML_SOFTWARE_THERMAL = 0x20,
    NVML_HARDWARE_THERMAL = 0x40,
    NVML_POWER_BRAKE = 0x80,
};

#endif
