/* Which ranks have a file in the run folder, or in several of them, at the end of the job:
 * databases, ledgers, copies and archives. */
#ifndef COMMPROF_PRESENCE_H
#define COMMPROF_PRESENCE_H

#include <stdbool.h>

/* "1 of 2 ranks (there is no file of rank 1)", unless all ranks are there; and a clause about those
 * whose file is a stub, which only names a ledger on a node: "" if there is none. */
struct presence_text {
    char ranks[512], on_nodes[320];
};

enum presence { PRESENCE_ALL, PRESENCE_SOME, PRESENCE_NONE };

/* `folders`: a path, or a pattern with ANY_RANK. `is_expected`: whether a rank should have a file.
 * `error`: set to an errno if a single folder cannot be listed. */
enum presence presence_find(const char *folders, int world_size, bool (*is_expected)(int rank),
                            struct presence_text *text, int *error);

#endif
