#include "settings.h"

#include "clock.h"
#include "rank_list.h"
#include "settings_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern char **environ;

struct settings settings;

const struct setting SETTINGS_TABLE[] = {
#define IS_FLAG_text false
#define IS_FLAG_ranks false
#define IS_FLAG_size false
#define IS_FLAG_number false
#define IS_FLAG_period false
#define IS_FLAG_mode false
#define IS_FLAG_clock false
#define IS_FLAG_gpu false
#define IS_FLAG_profile false
#define IS_FLAG_per false
#define IS_FLAG_stretch false
#define IS_FLAG_flag true
#define SETTING(NAME, FIELD, TYPE, DEFAULT, ARGUMENT, HELP) \
    {"COMMPROF_" #NAME, ARGUMENT, DEFAULT, HELP, IS_FLAG_##TYPE},
#include "settings.def"
#undef SETTING
};
const size_t SETTINGS_COUNT = sizeof SETTINGS_TABLE / sizeof SETTINGS_TABLE[0];

/* The parsers convert text to a value; false if it is malformed, and then the value is
 * unchanged. */

static bool parse_text(const char *text, setting_text *value)
{
    if (strlen(text) >= sizeof *value)
        return false;
    snprintf(*value, sizeof *value, "%s", text);
    return true;
}

static bool parse_ranks(const char *text, setting_ranks *value)
{
    if (*text && strcasecmp(text, SETTING_ONE_PER_NODE) != 0 && !rank_list_is_valid(text))
        return false;
    return parse_text(*text && !isdigit((unsigned char)*text) ? SETTING_ONE_PER_NODE : text, value);
}

static bool parse_number(const char *text, setting_number *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || !isdigit((unsigned char)text[0]) || *end)
        return false;
    *value = number;
    return true;
}

/* Decimal seconds; the rest of the text follows. The decimal point is one in any locale. */
static bool parse_seconds(const char **text, uint64_t *ns)
{
    static const uint64_t SECOND_NS = 1000000000, MOST_S = 100000000;
    uint64_t seconds = 0, part_ns = 0;
    if (!isdigit((unsigned char)**text))
        return false;
    for (; isdigit((unsigned char)**text) && seconds <= MOST_S; (*text)++)
        seconds = 10 * seconds + (uint64_t)(**text - '0');
    if (**text == '.') {
        if (!isdigit((unsigned char)*++*text))
            return false;
        for (uint64_t unit = SECOND_NS / 10; isdigit((unsigned char)**text); unit /= 10, (*text)++)
            part_ns += unit * (uint64_t)(**text - '0');
    }
    *ns = seconds * SECOND_NS + part_ns;
    return seconds <= MOST_S;
}

static bool parse_stretch(const char *text, setting_stretch *value)
{
    setting_stretch read = {0, 0};
    if (!parse_seconds(&text, &read.length_ns))
        return false;
    if (*text == '@') {
        text++;
        if (!parse_seconds(&text, &read.begin_ns))
            return false;
    }
    if (*text)
        return false;
    *value = read;
    return true;
}

static bool parse_period(const char *text, setting_period *value)
{
    if (strcasecmp(text, "once") != 0)
        return parse_number(text, value);
    *value = SETTING_ONCE;
    return true;
}

static bool parse_mode(const char *text, setting_mode *value)
{
    char *end;
    long mode = strtol(text, &end, 8);
    if (!isdigit((unsigned char)text[0]) || *end || mode > 0777)
        return false;
    *value = (setting_mode)mode;
    return true;
}

static bool parse_size(const char *text, setting_size *value)
{
    static const char UNITS[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || !isdigit((unsigned char)text[0]))
        return false;
    const char *unit = *end ? strchr(UNITS, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - UNITS + 1) : 0;
    if (unit)
        end++;
    if (*end || number > UINT64_MAX >> shift)
        return false;
    *value = number << shift;
    return true;
}

static bool is_one_of(const char *text, const char *const words[])
{
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0)
            return true;
    return false;
}

static bool parse_flag(const char *text, setting_flag *value)
{
    static const char *const ON[] = {"on", "1", "yes", "true", NULL};
    static const char *const OFF[] = {"off", "0", "no", "false", NULL};
    if (!is_one_of(text, ON) && !is_one_of(text, OFF))
        return false;
    *value = is_one_of(text, ON);
    return true;
}

static bool parse_word(const char *text, const char *const words[], int count, int *value)
{
    for (int i = 0; i < count; i++)
        if (strcasecmp(text, words[i]) == 0) {
            *value = i;
            return true;
        }
    return false;
}

/* A type whose values are words: the places in this list, as its enum has them. */
#define WORDS(TYPE, ...)                                                                          \
    static const char *const TYPE##_words[] = {__VA_ARGS__};                                      \
    static bool parse_##TYPE(const char *text, setting_##TYPE *value)                             \
    {                                                                                             \
        return parse_word(text, TYPE##_words, sizeof TYPE##_words / sizeof *TYPE##_words, value); \
    }                                                                                             \
    static const char *print_##TYPE(const setting_##TYPE *value, char *buffer, size_t bytes)      \
    {                                                                                             \
        (void)buffer, (void)bytes;                                                                \
        return TYPE##_words[*value];                                                              \
    }
WORDS(clock, [CLOCK_AUTO] = "auto", [CLOCK_COUNTER] = "counter", [CLOCK_GETTIME] = "monotonic")
WORDS(gpu, [GPU_WANTED_AUTO] = "auto", [GPU_WANTED_ON] = "on", [GPU_WANTED_OFF] = "off")
WORDS(profile, [PROFILE_FULL] = "full", [PROFILE_SITE] = "site", [PROFILE_OFF] = "off")
WORDS(per, [OUTPUT_PER_RANK] = "rank", [OUTPUT_PER_NODE] = "node")
#undef WORDS

#define SETTING(NAME, FIELD, TYPE, DEFAULT, ARGUMENT, HELP) \
    static bool set_##FIELD(const char *text)               \
    {                                                       \
        return parse_##TYPE(text, &settings.FIELD);         \
    }
#include "settings.def"
#undef SETTING

enum {
#define SETTING(NAME, FIELD, TYPE, DEFAULT, ARGUMENT, HELP) AT_##NAME,
#include "settings.def"
#undef SETTING
    AT_END
};

static bool (*const SET[])(const char *text) = {
#define SETTING(NAME, FIELD, TYPE, DEFAULT, ARGUMENT, HELP) set_##FIELD,
#include "settings.def"
#undef SETTING
};

static const char SITE_FACTS[] =
    "cpu_model,kernel,env.OMPI_MCA_btl*,env.OMPI_MCA_coll*,env.OMPI_MCA_io*,env.OMPI_MCA_mpi_*,"
    "env.OMPI_MCA_mtl*,env.OMPI_MCA_opal_*,env.OMPI_MCA_osc*,env.OMPI_MCA_pml*,env.MPICH_*,env."
    "MPIR_*,"
    "env.I_MPI_*,env.MV2_*,env.MVP_*,env.UCX_*,env.UCC_*,env.HCOLL_*,env.FI_*,env.PSM*,env.ROMIO_*,"
    "env.NCCL_*,env.OMP_*";

/* The defaults of profile=site. */
static const char *const SITE_DEFAULTS[AT_END] = {
    [AT_SHORTEST_S] = "60", [AT_COPY_S] = "600",     [AT_MEMORY] = "2M", [AT_SAMPLES] = "0",
    [AT_GPU] = "off",       [AT_FACTS] = SITE_FACTS, [AT_QUIET] = "on",  [AT_CPU_TIME] = "off",
};

static const char *site_values[AT_END]; /* NULL: the site's file does not have it */
static const char *sources[AT_END];

static bool is_name_of(const struct setting *setting, const char *name)
{
    const char *own = setting->variable + strlen("COMMPROF_");
    for (; *own &&
           tolower((unsigned char)*own) == (*name == '-' ? '_' : tolower((unsigned char)*name));
         own++)
        name++;
    return !*own && !*name;
}

static const char *take_from_site(const char *name, const char *value)
{
    static char why[200];
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        if (!is_name_of(&SETTINGS_TABLE[i], name) || i == AT_CONFIG)
            continue;
        if (*value && !SET[i](value)) {
            snprintf(why, sizeof why, "%.40s = %.60s is not understood (%s)", name, value,
                     SETTINGS_TABLE[i].argument);
            return why;
        }
        site_values[i] = *value ? value : NULL;
        return NULL;
    }
    snprintf(why, sizeof why, "%.40s is not a setting; commprof-run --help lists them", name);
    return why;
}

static const char *site_file(void)
{
    return *settings.config ? settings.config : SETTINGS_SITE_FILE;
}

/* All ranks of a node read it within a moment; what each reads a second time, to report its faults,
 * is in the system's cache. */
static void read_site(void (*complain)(const char *line))
{
    static struct settings_file file;
    char line[512];
    memset(site_values, 0, sizeof site_values);
    settings_file_read(&file, site_file(), !*settings.config, take_from_site);
    if (!*file.fault || !complain)
        return;
    int used = snprintf(line, sizeof line, "%.200s, %s", site_file(), file.fault);
    if (file.more_faults)
        snprintf(line + used, sizeof line - (size_t)used,
                 "; lines that are not understood beyond this one: %u", file.more_faults);
    complain(line);
}

/* The default, or that of profile=site; above it the site's value, above that the variable. */
static void read_one(size_t index, void (*complain)(const char *))
{
    const struct setting *setting = &SETTINGS_TABLE[index];
    const char *text = getenv(setting->variable), *below = site_values[index];
    sources[index] = below ? site_file() : NULL;
    if (!below && settings.profile == PROFILE_SITE && SITE_DEFAULTS[index]) {
        below = SITE_DEFAULTS[index];
        sources[index] = "profile=site";
    }
    SET[index](below ? below : setting->fallback);
    if (!text || !*text)
        return;
    if (SET[index](text)) {
        sources[index] = setting->variable;
        return;
    }
    char line[512];
    const char *used = below ? below : *setting->fallback ? setting->fallback : "the default";
    snprintf(line, sizeof line, "%s=%.200s is not understood (%s); using %.100s", setting->variable,
             text, setting->argument, used);
    if (complain)
        complain(line);
}

static void name_the_unknown(void (*complain)(const char *))
{
    for (char **variable = environ; *variable; variable++) {
        if (strncmp(*variable, "COMMPROF_", 9) != 0)
            continue;
        size_t length = strcspn(*variable, "=");
        bool known = strncmp(*variable, "COMMPROF_REPLAY_", 16) == 0; /* set by commprof-replay */
        for (size_t i = 0; i < SETTINGS_COUNT; i++)
            known |= strlen(SETTINGS_TABLE[i].variable) == length &&
                     strncmp(*variable, SETTINGS_TABLE[i].variable, length) == 0;
        if (known || !complain)
            continue;
        char line[512];
        snprintf(line, sizeof line, "%.*s is not a setting; commprof-run --help lists them",
                 (int)(length < 200 ? length : 200), *variable);
        complain(line);
    }
}

static bool is_read;

void settings_read_once(void)
{
    if (!is_read)
        settings_read(NULL);
}

void settings_read(void (*complain)(const char *line))
{
    is_read = true;
    site_values[AT_CONFIG] = NULL;
    read_one(AT_CONFIG, complain);
    read_site(complain);
    for (size_t i = AT_CONFIG + 1; i < SETTINGS_COUNT; i++)
        read_one(i, complain);
    name_the_unknown(complain);
}

const char *settings_source(size_t index)
{
    return sources[index];
}

/* The printers convert a value to text, in the caller's buffer. */

static const char *print_text(const setting_text *value, char *buffer, size_t bytes)
{
    (void)buffer, (void)bytes;
    return *value;
}

static const char *print_ranks(const setting_ranks *value, char *buffer, size_t bytes)
{
    return print_text(value, buffer, bytes);
}

static const char *print_number(const setting_number *value, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%llu", (unsigned long long)*value);
    return buffer;
}

static const char *print_period(const setting_period *value, char *buffer, size_t bytes)
{
    return *value == SETTING_ONCE ? "once" : print_number(value, buffer, bytes);
}

/* As many decimals as are needed; returns the length. */
static int print_seconds(uint64_t ns, char *buffer, size_t bytes)
{
    int used = snprintf(buffer, bytes, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
                        (unsigned long long)(ns % 1000000000));
    while (buffer[used - 1] == '0')
        used--;
    used -= buffer[used - 1] == '.';
    buffer[used] = '\0';
    return used;
}

static const char *print_stretch(const setting_stretch *value, char *buffer, size_t bytes)
{
    int used = print_seconds(value->length_ns, buffer, bytes);
    if (value->begin_ns) {
        buffer[used++] = '@';
        print_seconds(value->begin_ns, buffer + used, bytes - (size_t)used);
    }
    return buffer;
}

static const char *print_mode(const setting_mode *value, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%03o", *value);
    return buffer;
}

static const char *print_size(const setting_size *value, char *buffer, size_t bytes)
{
    unsigned unit = 0;
    setting_size size = *value;
    while (unit < 3 && size && size % 1024 == 0) {
        size /= 1024;
        unit++;
    }
    snprintf(buffer, bytes, "%llu%.*s", (unsigned long long)size, unit ? 1 : 0,
             &"KMG"[unit ? unit - 1 : 0]);
    return buffer;
}

static const char *print_flag(const setting_flag *value, char *buffer, size_t bytes)
{
    (void)buffer, (void)bytes;
    return *value ? "on" : "off";
}

const char *settings_value(size_t wanted)
{
    static char buffer[64];
    size_t index = 0;
#define SETTING(NAME, FIELD, TYPE, DEFAULT, ARGUMENT, HELP) \
    if (index++ == wanted)                                  \
        return print_##TYPE(&settings.FIELD, buffer, sizeof buffer);
#include "settings.def"
#undef SETTING
    return "";
}

static bool same_call(const char *word, size_t length, const char *call_name)
{
    if (length > 4 && strncasecmp(word, "MPI_", 4) == 0) {
        word += 4;
        length -= 4;
    }
    const char *plain = strncmp(call_name, "MPI_", 4) == 0 ? call_name + 4 : call_name;
    return strlen(plain) == length && strncasecmp(word, plain, length) == 0;
}

static bool is_name_or_its_beginning(const char *word, size_t length, const char *name)
{
    if (length && word[length - 1] == '*')
        return strncasecmp(word, name, length - 1) == 0;
    return strlen(name) == length && strncasecmp(word, name, length) == 0;
}

static bool any_word(const char *list,
                     bool (*fits)(const char *word, size_t length, const char *name),
                     const char *name)
{
    for (size_t length; *list; list += length + strspn(list + length, ", ")) {
        length = strcspn(list, ", ");
        if (fits(list, length, name))
            return true;
    }
    return false;
}

bool settings_excludes(const char *call_name)
{
    return any_word(settings.exclude, same_call, call_name);
}

bool settings_list_has(const char *list, const char *name)
{
    return any_word(list, is_name_or_its_beginning, name);
}
