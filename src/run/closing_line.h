/* The final message: where the profile is and how to read it, or why it is not there. The folders
 * of all ranks are given as one pattern, quoted for a shell. */
#ifndef COMMPROF_CLOSING_LINE_H
#define COMMPROF_CLOSING_LINE_H

#include "run_folder.h"

/* `ranks`: of how many ranks the profile is, if each one that `is_expected` has left a file. */
void closing_line_say(struct run_folder *folder, int world_size, const char *ranks,
                      bool (*is_expected)(int rank));

/* Whether the job's first ranks have left no file, as ranks that are not profiled, so that this one
 * is the first to speak. Not known where ranks or hosts have folders or archives of their own. */
bool closing_line_is_ours(const struct run_folder *folder, int world_rank);

#endif
