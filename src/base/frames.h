/* The functions that this thread is in, by their frames on the stack. */
#ifndef COMMPROF_FRAMES_H
#define COMMPROF_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Both are addresses of local variables, `outer` further up the stack than `inner`, which belongs to a function that runs. Whether the
 * function that `outer` belonged to has been left: its place on the stack is now another's. False where the stack
 * cannot be told apart (code made at run time). Takes a microsecond or two. */
bool frames_was_left(uintptr_t outer, uintptr_t inner);

#endif
