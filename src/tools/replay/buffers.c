#include "buffers.h"

#include <stdio.h>
#include <stdlib.h>

/* As floats from 1 to 2, as doubles near 0.008. */
char *buffers_filled(int64_t bytes, size_t alignment)
{
    uint64_t state = 88172645463325252u + (uint64_t)bytes;
    size_t words = (size_t)bytes / 4 + 16;
    uint32_t *buffer =
        aligned_alloc(alignment, (words * 4 + alignment - 1) / alignment * alignment);
    if (!buffer) {
        fprintf(stderr, "commprof-replay: no memory for a message of %lld bytes\n",
                (long long)bytes);
        exit(1);
    }
    for (size_t i = 0; i < words; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        buffer[i] = 0x3f800000u | (uint32_t)(state & 0x7fffff);
    }
    return (char *)buffer;
}

#if defined(__x86_64__)
static void evict_line(const char *line)
{
    __builtin_ia32_clflush(line);
}
#elif defined(__aarch64__)
static void evict_line(const char *line)
{
    __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
}
#else
#define CANNOT_EVICT
static void evict_line(const char *line)
{
    (void)line;
}
#endif

bool buffers_can_be_cold(void)
{
#ifdef CANNOT_EVICT
    return false;
#else
    return true;
#endif
}

void buffers_settle(enum buffers how, const char *bytes, int64_t count)
{
    for (int64_t at = 0; how != BUFFERS_RECORDED && at < count; at += LINE_BYTES)
        if (how == BUFFERS_HOT)
            (void)*(const volatile char *)(bytes + at);
        else
            evict_line(bytes + at);
    __sync_synchronize();
}

void buffers_work(struct work *work)
{
    ++*(volatile char *)(work->bytes + work->at);
    work->at = (work->at + LINE_BYTES) % WORK_BYTES;
}
