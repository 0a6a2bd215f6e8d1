/* Numbers the kernels: the ledger stores each name once, and events refer to it by number. GPU
 * thread. */
#ifndef COMMPROF_GPU_KERNELS_H
#define COMMPROF_GPU_KERNELS_H

#include "ledger/ledger_format.h"

#include <stdbool.h>

enum {
    KERNELS_MOST = 4000,
    KERNELS_LONGEST_NAME = 4000,
    KERNELS_MOST_CHUNKS = 64 /* 4 MB of names */
};

struct kernel {
    uint16_t number; /* LEDGER_KERNEL_OTHER if the table is full */
    bool is_communication;
};

/* Empties the table. */
void kernels_begin(void);

/* The kernel with this (mangled) name; NULL: the name could not be read. Names are compared by
 * content, up to KERNELS_LONGEST_NAME characters. */
struct kernel kernels_find(const char *name);

/* The name of a communication kernel; NULL for other kernels. */
const char *kernels_communication(uint16_t number);

#endif
