/* Whether a function that this thread was in is still active, by the frames on the stack. */
#ifndef COMMPROF_FRAMES_H
#define COMMPROF_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Loads what frames_was_left needs, which then takes no memory and no lock of ours: a signal
 * handler may call it. */
void frames_begin(void);

/* Both arguments are addresses of local variables. `inner` belongs to a running function of the
 * same thread. Returns whether the function of `outer` has been left, so that another frame is
 * there now, or none. False if the stack cannot be walked (code generated at run time). Takes a
 * microsecond or two. */
bool frames_was_left(uintptr_t outer, uintptr_t inner);

#endif
