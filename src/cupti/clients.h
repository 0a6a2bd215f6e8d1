/* Detects other tools that trace the GPU in this process. NVIDIA's tools and some profilers cannot
 * share it. We yield before our first call to CUPTI, because callbacks of ours, once registered,
 * would make Nsight Systems see no kernel. */
#ifndef COMMPROF_CUPTI_CLIENTS_H
#define COMMPROF_CUPTI_CLIENTS_H

#include "cupti_library.h"

/* Checks the environment and the libraries in the process. True: a tool is here; `reason` names it,
 * in one line. Makes no call to CUPTI. */
bool clients_are_seen(char *reason, size_t reason_bytes);

/* Checks CUPTI's single subscription, which many tools hold, by taking it and returning it at once.
 * True: another tool holds it. */
bool clients_hold_cupti(const struct cupti *cupti, char *reason, size_t reason_bytes);

#endif
