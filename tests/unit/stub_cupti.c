/* libcupti.so.13; see stub_cupti.h. */
#include "stub_cupti.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void write_record(const void *record, size_t bytes);

struct stub_cupti stub_cupti = {
    .version = 130001, .write = write_record, .attributes = {[0] = 3200000, [2] = 250, [6] = 3}};

#ifdef STUB_13_2
int cuptiActivityEnable_v2(void); /* new in 13.2; its presence identifies that version */
int cuptiActivityEnable_v2(void)
{
    return 999;
}
#endif

int cuptiGetVersion(uint32_t *version)
{
    stub_cupti.versions_asked_for++;
    *version = stub_cupti.version;
    return stub_cupti.version_result;
}

int cuptiGetTimestamp(uint64_t *ns)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *ns = (uint64_t)(now.tv_sec * INT64_C(1000000000) + now.tv_nsec + stub_cupti.ahead_ns);
    return 0;
}

int cuptiGetResultString(int result, const char **name)
{
    *name = result ? "CUPTI_ERROR_OF_THE_STUB" : "CUPTI_SUCCESS";
    return 0;
}

int cuptiGetStreamIdEx(void *context, void *stream, uint8_t is_per_thread, uint32_t *number)
{
    *number = !context ? 0 : is_per_thread ? 9 : (uint32_t)(uintptr_t)stream + 7;
    stub_cupti.streams_asked_for++;
    return context ? 0 : 3;
}

int cuptiGetContextId(void *context, uint32_t *number)
{
    *number = context ? 3 : 0;
    return context ? 0 : 3;
}

int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                   void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t))
{
    if (!request || !complete)
        return 1;
    stub_cupti.request = request;
    stub_cupti.complete = complete;
    stub_cupti.registrations++;
    return 0;
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void))
{
    stub_cupti.clock = now;
    return 0;
}

int cuptiActivityGetAttribute(int attribute, size_t *bytes, void *value)
{
    *bytes = sizeof(size_t);
    memcpy(value, &stub_cupti.attributes[attribute], sizeof(size_t));
    return stub_cupti.attribute_result;
}

int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value)
{
    if (*bytes != sizeof(size_t))
        return 1;
    memcpy(&stub_cupti.attributes[attribute], value, sizeof(size_t));
    return stub_cupti.attribute_result;
}

int cuptiActivityEnable(int kind)
{
    if (stub_cupti.enable_result == 0 && stub_cupti.next_kind_refused == kind)
        return 14;
    if (stub_cupti.enable_result == 0)
        stub_cupti.enabled |= UINT64_C(1) << kind;
    return stub_cupti.enable_result;
}

int cuptiActivityDisable(int kind)
{
    stub_cupti.enabled &= ~(UINT64_C(1) << kind);
    return 0;
}

int cuptiFinalize(void)
{
    stub_cupti.enabled = 0;
    stub_cupti.request = NULL;
    stub_cupti.complete = NULL;
    return 0;
}

static void write_record(const void *record, size_t bytes)
{
    size_t most_records;
    if (!stub_cupti.buffer)
        stub_cupti.request(&stub_cupti.buffer, &stub_cupti.bytes, &most_records);
    memcpy(stub_cupti.buffer + stub_cupti.used, record, bytes);
    stub_cupti.used += bytes;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer = stub_cupti.buffer;
    size_t used = stub_cupti.used;
    stub_cupti.flushes++;
    stub_cupti.forced_flushes += flag == 1;
    if (!buffer || (stub_cupti.is_unfinished && flag == 0))
        return 0;
    stub_cupti.buffer = NULL;
    stub_cupti.used = 0;
    stub_cupti.complete(NULL, 0, buffer, stub_cupti.bytes, used);
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, void **record)
{
    uint8_t *at = *record ? *record : buffer;
    uint32_t kind = *record ? *(uint32_t *)at : 0;
    at += kind == 0    ? 0
          : kind == 10 ? STUB_KERNEL_BYTES
          : kind == 2  ? STUB_SET_BYTES
                       : STUB_COPY_BYTES;
    if (at >= buffer + valid_bytes)
        return 12;
    *record = at;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    (void)context, (void)stream;
    *count = stub_cupti.dropped;
    stub_cupti.dropped = 0;
    return 0;
}

int cuptiSubscribe(void **subscriber, void (*callback)(void), void *data)
{
    (void)callback, (void)data;
    if (stub_cupti.subscriber)
        return 39;
    *subscriber = &stub_cupti;
    stub_cupti.subscriptions++;
    return 0;
}

int cuptiSubscribe_v2(void **subscriber, void (*callback)(void), void *data, void *parameters)
{
    struct {
        size_t struct_bytes;
        const char *name;
        char *present_name;
        size_t present_bytes;
    } *asked = parameters;
    if (stub_cupti.subscriber && asked)
        snprintf(asked->present_name, asked->present_bytes, "%s", stub_cupti.subscriber);
    return cuptiSubscribe(subscriber, callback, data);
}

int cuptiUnsubscribe(void *subscriber)
{
    (void)subscriber;
    stub_cupti.subscriptions--;
    return 0;
}
