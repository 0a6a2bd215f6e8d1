/* Ranks as a user writes them: 0,4-7,16-63:8 (every eighth of them, from the first on). */
#ifndef COMMPROF_RANK_LIST_H
#define COMMPROF_RANK_LIST_H

#include <stdbool.h>

bool rank_list_is_valid(const char *list);

/* Both for a valid list. How many of the ranks below `limit` are in it; each once. */
bool rank_list_has(const char *list, long rank);
long rank_list_count(const char *list, long limit);

#endif
