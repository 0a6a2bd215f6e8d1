/* COMMPROF_GPU_DUMP=DIR: CUPTI's buffers as they came, in DIR/cupti-<host>-<process id>.dump, for tests that replay what a real GPU gave.
 *
 *     struct dump_header, then items: struct dump_item, `bytes` of it, padding to 8
 *         DUMP_PAIR      struct dump_pair
 *         DUMP_BUFFER    the valid bytes of a buffer; pointers in them mean nothing any more
 *         DUMP_RECORD    where a record of the buffer before lies (uint64_t), and the kernel's name, if it has one
 *
 * Without the setting all of these do nothing. They are called by the GPU thread alone. */
#ifndef COMMPROF_CUPTI_DUMP_H
#define COMMPROF_CUPTI_DUMP_H

#include <stddef.h>
#include <stdint.h>

#define DUMP_MAGIC "commprof-cupti1\n" /* 16 bytes, no terminator in the file */

enum dump_kind { DUMP_PAIR = 1, DUMP_BUFFER = 2, DUMP_RECORD = 3 };

struct dump_header {
    char magic[16];
    uint32_t header_bytes, cupti_version;
};

struct dump_item {
    uint32_t kind, bytes;
};

/* One moment on the clock of CUPTI's records and on CLOCK_MONOTONIC. */
struct dump_pair {
    uint64_t theirs;
    int64_t monotonic_ns;
};

/* Between these two the others write. */
void dump_open(uint32_t cupti_version);
void dump_close(void);

void dump_pair(uint64_t theirs, int64_t monotonic_ns);
void dump_buffer(const uint8_t *buffer, size_t valid_bytes);
void dump_record(size_t offset, const char *name);

#endif
