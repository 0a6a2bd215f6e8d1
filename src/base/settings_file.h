/* A file of settings, which a site gives to all its users: lines `name = value`, where `#` begins a
 * comment line.
 *
 *     output = /scratch/%u/commprof/%j
 *     gpu-every-s = 600
 *
 * The names are those of commprof-run's options; `_` is as good as `-`. The file may come from
 * anybody: it must be a regular file (or /dev/null, which holds nothing) of at most 16 kB without
 * control characters. One that is not is not used at all; a line that is not understood is left
 * out. */
#ifndef COMMPROF_SETTINGS_FILE_H
#define COMMPROF_SETTINGS_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { SETTINGS_FILE_BYTES = 16 << 10 };

struct settings_file {
    char text[SETTINGS_FILE_BYTES + 1]; /* its lines, cut into names and values */
    char fault[256];                    /* what is wrong with it, the first thing; "": nothing */
    unsigned more_faults;               /* how many lines are wrong beyond the first */
};

/* Reads the file and passes each pair to `take`, which returns NULL, or why it refuses the pair.
 * The values stay valid as long as `file` is not read again. If `may_be_missing`, a missing file is
 * empty. */
void settings_file_read(struct settings_file *file, const char *path, bool may_be_missing,
                        const char *(*take)(const char *name, const char *value));

#endif
