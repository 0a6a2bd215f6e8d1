/* Stand-ins for libcuda.so.1 and libcupti.so.13, as far as the unit tests of src/cupti/ need them: no device, no thread; a test writes records
 * by hand and sets how functions answer. The stubs export these two variables. */
#ifndef STUB_CUPTI_H
#define STUB_CUPTI_H

#include <stddef.h>
#include <stdint.h>

struct stub_cuda {
    int init_result;      /* of all functions but cuDriverGetVersion: 3 until cuInit, 4 when the driver is gone */
    int version, devices; /* 13000 */
    int is_active;        /* the primary context of the last device */
    void *context;        /* the current one */
    unsigned memory_type, is_managed;
    uint64_t stream_id; /* of every stream; 0: the driver has none */
};

struct stub_cupti {
    uint32_t version;
    int version_result, enable_result, next_kind_refused;
    const char *subscriber; /* who holds the subscription; NULL: nobody */
    unsigned subscriptions, registrations, flushes, forced_flushes, streams_asked_for, versions_asked_for;
    uint64_t enabled; /* a bit for each kind */
    uint64_t dropped;
    size_t attributes[16];
    int attribute_result;
    int64_t ahead_ns; /* of its clock, beside CLOCK_REALTIME */
    uint64_t (*clock)(void);
    void (*request)(uint8_t **buffer, size_t *bytes, size_t *most_records);
    void (*complete)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);
    int is_unfinished; /* a flush that is not forced gives nothing back */
    void (*write)(const void *record, size_t bytes);
    uint8_t *buffer; /* in use, with its bytes that are written */
    size_t bytes, used;
};

enum { STUB_KERNEL_BYTES = 216, STUB_COPY_BYTES = 96, STUB_SET_BYTES = 88 };

#endif
