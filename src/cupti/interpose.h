/* Other clients of CUPTI that call it as their program is linked to it, PyTorch's profiler for one: their calls pass through functions of ours
 * that have CUPTI's names. There is one pair of buffer callbacks and one set of enabled kinds for the whole process, so only one of us can
 * trace at a time, and it is the other one who does:
 *
 *     their cuptiActivityRegisterCallbacks, cuptiActivityEnable    gpu_yield: our window ends; then their call
 *     no kind of theirs is enabled (any more)                      gpu_unyield: ours go on later
 *
 * Who finds CUPTI by dlsym (JAX) is not seen. */
#ifndef COMMPROF_CUPTI_INTERPOSE_H
#define COMMPROF_CUPTI_INTERPOSE_H

#include <stdbool.h>

/* Whether a client has been seen: the subscription to CUPTI's callbacks may be its, and is no reason not to trace. */
bool interpose_has_seen_a_client(void);

/* Whether the callbacks registered last are ours; to be said after registering them, and when a client that is not seen must have registered
 * its own. */
bool interpose_callbacks_are_ours(void);
void interpose_callbacks_become_ours(void);
void interpose_callbacks_become_another_s(void);

#endif
