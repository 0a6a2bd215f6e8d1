/* The final message: where the profile is and how to read it. `ranks`: of how many ranks. The folders of all ranks are given as one pattern,
 * quoted for a shell. */
#ifndef COMMPROF_CLOSING_LINE_H
#define COMMPROF_CLOSING_LINE_H

#include "run_folder.h"

void closing_line_say(const struct run_folder *folder, int world_size, const char *ranks);

#endif
