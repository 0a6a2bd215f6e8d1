/* Cost of the profiler to this process for one counted call, in picoseconds: an estimate, measured
 * when it is asked for. */
#ifndef COMMPROF_COST_H
#define COMMPROF_COST_H

#include <stdint.h>

/* To be called while recording, by a thread of the job; a few tenths of a millisecond. */
uint64_t cost_per_call_ps(void);

#endif
