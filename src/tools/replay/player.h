/* Makes the calls of a kit's programs. */
#ifndef COMMPROF_PLAYER_H
#define COMMPROF_PLAYER_H

#include "arrival.h"
#include "buffers.h"
#include "objects.h"

struct player_settings {
    bool has_gaps; /* wait as long between calls as the job computed */
    enum arrival arrival;
    enum buffers buffers;
    bool is_counted; /* this pass is */
};

/* Checks that the library has all functions; else `why` has the name of the one it lacks. */
bool player_begin(const struct kit *kit, char *why, size_t why_bytes);

/* Checks this rank's programs; other ranks have others. */
bool player_begin_programs(const struct kit *kit, char *why, size_t why_bytes);

/* All programs of this rank once, each in a thread of its own; the first one in this thread. All
 * ranks begin together. Nothing is counted before and after. Returns how many nanoseconds it
 * took. */
int64_t player_play(const struct kit *kit, const struct objects *objects,
                    const struct player_settings *settings);

#endif
