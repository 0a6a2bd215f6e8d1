/* The kernels' names, each once in the ledger: a kernel is a number from there on. GPU thread. */
#ifndef COMMPROF_GPU_KERNELS_H
#define COMMPROF_GPU_KERNELS_H

#include "ledger/ledger_format.h"

#include <stdbool.h>

enum { KERNELS_MOST = 4000, KERNELS_LONGEST_NAME = 4000, KERNELS_MOST_CHUNKS = 64 /* 4 MB of names */ };

struct kernel {
    uint16_t number; /* LEDGER_KERNEL_OTHER where there is no room for one more */
    bool is_communication;
};

/* Begin without any. */
void kernels_begin(void);

/* The kernel with this (mangled) name, NULL: a name that could not be read. Names are told apart by their content, up to
 * KERNELS_LONGEST_NAME characters. */
struct kernel kernels_find(const char *name);

/* The name of one that communicates; NULL: of another one. */
const char *kernels_communication(uint16_t number);

#endif
