/* Memory of the messages, and the caches around it. */
#ifndef COMMPROF_BUFFERS_H
#define COMMPROF_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum buffers { BUFFERS_RECORDED, BUFFERS_HOT, BUFFERS_COLD };

enum { LINE_BYTES = 64, PAGE_BYTES = 4096, WORK_BYTES = 1 << 20 };

/* A thread computes with it, in place of the job's data. */
struct work {
    char *bytes; /* WORK_BYTES */
    size_t at;
};

/* With values that neither trap nor compress, touched by the calling thread. */
char *buffers_filled(int64_t bytes, size_t alignment);

/* Hot: reads the bytes, so that they are in this core's caches as far as these have room. Cold:
 * takes them out of all caches. */
void buffers_settle(enum buffers how, const char *bytes, int64_t count);

/* Writes to the next line: computing takes the messages out of a core's own caches. */
void buffers_work(struct work *work);

/* Whether a program can do so on this processor. */
bool buffers_can_be_cold(void);

#endif
