/* Intercepts other clients of CUPTI that are linked to it, such as PyTorch's profiler: their calls
 * pass through our functions of the same names. The process has one pair of buffer callbacks and
 * one set of enabled kinds, so only one client can trace at a time, and the other one takes
 * precedence:
 *
 *     their cuptiActivityRegisterCallbacks, cuptiActivityEnable gpu_yield: our window ends; then
 *     their call none of their kinds is enabled (any more) gpu_unyield: our tracing resumes later
 *
 * A client that finds CUPTI by dlsym (JAX) is not seen. */
#ifndef COMMPROF_CUPTI_INTERPOSE_H
#define COMMPROF_CUPTI_INTERPOSE_H

#include <stdbool.h>

/* Whether a client has been seen: it may hold CUPTI's subscription, which is no reason not to
 * trace. */
bool interpose_has_seen_a_client(void);

/* Whether the callbacks registered last are ours. The other two functions record this: after we
 * register ours, and when a client that is not seen must have registered its own. */
bool interpose_callbacks_are_ours(void);
void interpose_callbacks_become_ours(void);
void interpose_callbacks_become_another_s(void);

#endif
