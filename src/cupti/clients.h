/* Who else traces the GPU in this process. NVIDIA's tools and some profilers cannot share it: we give way before we have called CUPTI once,
 * for even registered callbacks of ours would make Nsight Systems see no kernel. */
#ifndef COMMPROF_CUPTI_CLIENTS_H
#define COMMPROF_CUPTI_CLIENTS_H

#include "cupti_library.h"

/* By what tools leave in the environment and in the process. True: one is here; `reason` names it, in one line. Nothing of CUPTI is called. */
bool clients_are_seen(char *reason, size_t reason_bytes);

/* By CUPTI's one subscription, which many tools hold: it is taken and given back at once. True: another has it. */
bool clients_hold_cupti(const struct cupti *cupti, char *reason, size_t reason_bytes);

#endif
