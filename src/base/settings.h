/* The user's settings: the environment variables COMMPROF_* that settings.def lists, and below them
 * a site's file of defaults.
 *
 * They are read and checked once, and stored with the run. A malformed value or an unknown
 * COMMPROF_ variable is reported once through `complain`, and the site's value or the default is
 * used; what is wrong in the site's file is reported in one line. */
#ifndef COMMPROF_SETTINGS_H
#define COMMPROF_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SETTING_TEXT_BYTES = PATH_MAX };

typedef char setting_text[SETTING_TEXT_BYTES];
typedef setting_text setting_ranks; /* "": all */
typedef uint64_t setting_size;
typedef uint64_t setting_number;
typedef uint64_t setting_period; /* SETTING_ONCE: not periodic */
typedef unsigned setting_mode;   /* permission bits */
typedef bool setting_flag;
typedef int setting_clock; /* enum clock_kind */
typedef int setting_gpu;   /* enum gpu_wanted */
typedef int setting_profile;
typedef int setting_per; /* enum output_per */
typedef struct {
    uint64_t length_ns, begin_ns; /* length 0: none */
} setting_stretch;

#define SETTING_ONCE UINT64_MAX
#define SETTING_ONE_PER_NODE "one-per-node"

enum { PROFILE_FULL, PROFILE_SITE, PROFILE_OFF };
enum output_per { OUTPUT_PER_RANK, OUTPUT_PER_NODE };

enum gpu_wanted { GPU_WANTED_AUTO, GPU_WANTED_ON, GPU_WANTED_OFF };

struct settings {
#define SETTING(NAME, FIELD, TYPE, DEFAULT, ARGUMENT, HELP) setting_##TYPE FIELD;
#include "settings.def"
#undef SETTING
};
extern struct settings settings;

/* One setting of the table, for code that prints or stores all of them. */
struct setting {
    const char *variable; /* "COMMPROF_OUTPUT" */
    const char *argument;
    const char *fallback; /* the default, as text */
    const char *help;
    bool is_flag;
};
extern const struct setting SETTINGS_TABLE[];
extern const size_t SETTINGS_COUNT;

/* The file that a site may have. */
#define SETTINGS_SITE_FILE "/etc/commprof.conf"

/* Read the site's file and the environment into `settings`. `complain` gets one line (without a
 * newline) per fault; it may be NULL. */
void settings_read(void (*complain)(const char *line));

/* The same, silently, unless it has been done: for what is asked before MPI_Init. */
void settings_read_once(void);

/* The current value as text. */
const char *settings_value(size_t index);

/* Source of the current value: the variable, the site's file, "profile=site", or NULL for the
 * default. */
const char *settings_source(size_t index);

/* Whether the comma-separated list `exclude` names this call, with or without its MPI_ prefix, in
 * any case. */
bool settings_excludes(const char *call_name);

/* Whether the comma-separated list has this name, or its beginning with a star. */
bool settings_list_has(const char *list, const char *name);

#endif
