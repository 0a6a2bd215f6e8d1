#include "rank_list.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

struct span {
    long first, last, step;
};

static bool read_number(const char **text, long *number)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)**text))
        return false;
    *number = strtol(*text, &end, 10);
    *text = end;
    return !errno && *number <= INT_MAX;
}

/* Reads a span and the comma after it. At the end of the list, `text` becomes NULL. */
static bool read_span(const char **text, struct span *span)
{
    span->step = 1;
    if (!read_number(text, &span->first))
        return false;
    span->last = span->first;
    if (**text == '-') {
        ++*text;
        if (!read_number(text, &span->last) || span->last < span->first)
            return false;
        if (**text == ':') {
            ++*text;
            if (!read_number(text, &span->step) || span->step < 1)
                return false;
        }
    }
    bool is_end = !**text, goes_on = **text == ',';
    *text = is_end ? NULL : *text + 1;
    return is_end || goes_on;
}

bool rank_list_is_valid(const char *list)
{
    struct span span;
    while (list)
        if (!read_span(&list, &span))
            return false;
    return true;
}

bool rank_list_has(const char *list, long rank)
{
    struct span span;
    while (list && read_span(&list, &span))
        if (rank >= span.first && rank <= span.last && (rank - span.first) % span.step == 0)
            return true;
    return false;
}

long rank_list_count(const char *list, long limit)
{
    long count = 0;
    for (long rank = 0; rank < limit; rank++)
        count += rank_list_has(list, rank);
    return count;
}
