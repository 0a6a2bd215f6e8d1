/* Whether a function that this thread was in is still active, by the frames on the stack. */
#ifndef COMMPROF_FRAMES_H
#define COMMPROF_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Both arguments are addresses of local variables. `inner` belongs to a running function; `outer` is further up the stack, at a higher
 * address. Returns whether the function of `outer` has been left, so that another frame is there now. False if the stack cannot be walked
 * (code generated at run time). Takes a microsecond or two. */
bool frames_was_left(uintptr_t outer, uintptr_t inner);

#endif
