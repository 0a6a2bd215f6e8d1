/* A variable names a file of settings if its name ends like one and its value is the path of a
 * regular file. Files that a library writes, and lists of hosts, have similar names: a part of the
 * name excludes them. */
#include "environment.h"

#include "base/settings.h"
#include "ledger/ledger.h"
#include "secrets.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static const char *const PREFIXES[] = {"OMPI_",       "COMMPROF_REPLAY_",
                                       "PMIX_",       "PRTE_",
                                       "MPICH_",      "MPIR_CVAR_",
                                       "MPIR_PARAM_", "I_MPI_",
                                       "MV2_",        "MVP_",
                                       "UCX_",        "UCC_",
                                       "HCOLL_",      "FI_",
                                       "PSM2_",       "PSM3_",
                                       "ROMIO_",      "NCCL_",
                                       "HOROVOD_",    "OMP_",
                                       "KMP_",        "GOMP_",
                                       "MALLOC_",     "SLURM_",
                                       "PBS_",        "CUDA_VISIBLE_DEVICES=",
                                       NULL};
static const char *const REPEATED[] = {
    "OMPI_ARGV=", "OMPI_COMMAND=", NULL}; /* the command line once more */
static const char *const FREE_TEXT[] = {"COMMENT", "JOB_EXTRA",
                                        NULL}; /* what a user writes about a job */
static const char *const FILE_ENDINGS[] = {"file",  "files",  "filename",   "json",
                                           "hints", "tuning", "tuning_bin", NULL};
static const char *const NO_SETTINGS[] = {"debug", "log",  "dump",   "stat", "trace",
                                          "host",  "node", "output", "uri",  NULL};

enum { TEXT_BYTES = 4096, HASHED_BYTES = 16 << 20 };

void environment_fact(const char *key, const char *value)
{
    if (settings_list_has(settings.facts, key))
        ledger_fact(key, value);
}

static bool starts_with_one_of(const char *name, const char *const prefixes[])
{
    for (; *prefixes; prefixes++)
        if (strncmp(name, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

static bool contains_one_of(const char *name, size_t length, const char *const parts[])
{
    for (; *parts; parts++)
        for (size_t at = 0; at + strlen(*parts) <= length; at++)
            if (strncasecmp(name + at, *parts, strlen(*parts)) == 0)
                return true;
    return false;
}

const char *environment_masked(const char *name, size_t length, const char *value)
{
    static char masked[16384];
    secrets_mask_value(name, length, value, masked, sizeof masked);
    return masked;
}

/* Files of settings */

static bool names_settings(const char *name, size_t length)
{
    if (contains_one_of(name, length, NO_SETTINGS))
        return false;
    for (const char *const *ending = FILE_ENDINGS; *ending; ending++)
        if (strlen(*ending) < length &&
            strncasecmp(name + length - strlen(*ending), *ending, strlen(*ending)) == 0)
            return !secrets_named(name, length);
    return false;
}

/* FNV-1a, to compare files of two runs; not to prove that they are equal. */
static void hash_file(int file, const char *start, size_t start_bytes, off_t whole_bytes,
                      char *fact, size_t fact_bytes)
{
    char part[TEXT_BYTES];
    uint64_t hash = 0xcbf29ce484222325;
    size_t total = 0;
    ssize_t got = (ssize_t)start_bytes;
    for (const char *at = start; got > 0 && total < HASHED_BYTES;
         got = read(file, part, sizeof part), at = part) {
        for (ssize_t i = 0; i < got; i++)
            hash = (hash ^ (unsigned char)at[i]) * 0x100000001b3;
        total += (size_t)got;
    }
    snprintf(fact, fact_bytes, "%lld bytes, FNV-1a %016" PRIx64, (long long)whole_bytes, hash);
}

static void record_open_file(int file, const char *key)
{
    static char text[TEXT_BYTES + 2], fact[2 * TEXT_BYTES];
    struct stat about;
    size_t used = 0;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
        return;
    for (ssize_t got;
         used <= TEXT_BYTES && (got = read(file, text + used, TEXT_BYTES + 1 - used)) > 0;)
        used += (size_t)got;
    text[used] = '\0';
    fact[0] = '\0';
    if (used > TEXT_BYTES || memchr(text, '\0', used))
        hash_file(file, text, used, about.st_size, fact, sizeof fact);
    else
        secrets_mask_lines(text, used, fact, sizeof fact);
    environment_fact(key, fact);
}

static void record_file(const char *name, size_t length, const char *path)
{
    char key[256];
    if (!names_settings(name, length))
        return;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return;
    snprintf(key, sizeof key, "file.%.*s", (int)(length < 200 ? length : 200), name);
    record_open_file(file, key);
    close(file);
}

void environment_record(void)
{
    for (char **variable = environ; *variable; variable++) {
        char key[256];
        size_t length = strcspn(*variable, "=");
        if (!starts_with_one_of(*variable, PREFIXES) || starts_with_one_of(*variable, REPEATED) ||
            !(*variable)[length])
            continue;
        if (contains_one_of(*variable, length, FREE_TEXT))
            continue;
        snprintf(key, sizeof key, "env.%.*s", (int)(length < 200 ? length : 200), *variable);
        const char *value = *variable + length + 1;
        bool is_own = strncmp(*variable, "COMMPROF_", 9) == 0; /* the hash of a kit looks random */
        environment_fact(key, is_own ? value : environment_masked(*variable, length, value));
        record_file(*variable, length, value);
    }
}
