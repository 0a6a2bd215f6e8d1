/* COMMPROF_GPU_DUMP=DIR: writes CUPTI's buffers, unchanged, to DIR/cupti-<host>-<process id>.dump,
 * for tests that replay data of a real GPU.
 *
 *     struct dump_header, then items: struct dump_item, `bytes` of it, padding to 8
 *         DUMP_PAIR      struct dump_pair
 *         DUMP_BUFFER    the valid bytes of a buffer; pointers in them are no longer valid
 *         DUMP_RECORD    offset of a record in the last buffer (uint64_t), and the kernel's name,
 *                        if it has one
 *
 * Without the setting these functions do nothing. They are called by the GPU thread alone. */
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

/* The same time on the clock of CUPTI's records and on CLOCK_MONOTONIC. */
struct dump_pair {
    uint64_t theirs;
    int64_t monotonic_ns;
};

/* The functions below write only between dump_open and dump_close. */
void dump_open(uint32_t cupti_version);
void dump_close(void);

void dump_pair(uint64_t theirs, int64_t monotonic_ns);
void dump_buffer(const uint8_t *buffer, size_t valid_bytes);
void dump_record(size_t offset, const char *name);

#endif
