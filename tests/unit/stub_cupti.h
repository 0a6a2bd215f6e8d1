/* Stubs of libcuda.so.1 and libcupti.so.13 for the unit tests of src/cupti/: no device, no thread.
 * A test writes the records and sets the results of functions through the two variables that the
 * stubs export. */
#ifndef STUB_CUPTI_H
#define STUB_CUPTI_H

#include <stddef.h>
#include <stdint.h>

struct stub_cuda {
    int init_result; /* result of all functions except cuDriverGetVersion: 3 before cuInit, 4 after
                        the driver has shut down */
    int version, devices; /* 13000 */
    int is_mig;           /* devices are MIG instances, whose own UUIDs differ from their GPU's */
    int is_active;        /* the primary context of the last device */
    void *context;        /* the current context */
    unsigned memory_type, is_managed;
    uint64_t stream_id; /* of every stream; 0: the driver has no ids */
};

struct stub_cupti {
    uint32_t version;
    int version_result, enable_result, next_kind_refused;
    const char *subscriber; /* holder of the subscription; NULL: none */
    unsigned subscriptions, registrations, flushes, forced_flushes, streams_asked_for,
        versions_asked_for;
    uint64_t enabled; /* one bit per kind */
    uint64_t dropped;
    size_t attributes[16];
    int attribute_result;
    int64_t ahead_ns; /* CUPTI's clock minus CLOCK_REALTIME */
    uint64_t (*clock)(void);
    void (*request)(uint8_t **buffer, size_t *bytes, size_t *most_records);
    void (*complete)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                     size_t valid_bytes);
    int is_unfinished; /* an unforced flush returns no buffer */
    void (*write)(const void *record, size_t bytes);
    uint8_t *buffer; /* the buffer in use, and its bytes written so far */
    size_t bytes, used;
};

enum { STUB_KERNEL_BYTES = 216, STUB_COPY_BYTES = 96, STUB_SET_BYTES = 88 };

#endif
