/* Which ranks have a file in the run folder, or in several of them, at the end of the job:
 * databases, ledgers, copies and archives. */
#ifndef COMMPROF_PRESENCE_H
#define COMMPROF_PRESENCE_H

#include <stdbool.h>
#include <stddef.h>

enum presence { PRESENCE_ALL, PRESENCE_SOME, PRESENCE_NONE };

/* `folders`: a path, or a pattern with ANY_RANK. `is_expected`: whether a rank should have a file.
 * `text` describes the ranks if some or all are missing: "1 of 2 ranks (there is no file of rank
 * 1)". `error`: set to an errno if a single folder cannot be listed. */
enum presence presence_find(const char *folders, int world_size, bool (*is_expected)(int rank),
                            char *text, size_t bytes, int *error);

#endif
