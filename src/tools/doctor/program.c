#include "program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    enum program_kind kind;
} KNOWN[] = {
    {"mpirun", PROGRAM_LAUNCHER},      {"mpiexec", PROGRAM_LAUNCHER},
    {"orterun", PROGRAM_LAUNCHER},     {"prterun", PROGRAM_LAUNCHER},
    {"srun", PROGRAM_LAUNCHER},        {"aprun", PROGRAM_LAUNCHER},
    {"jsrun", PROGRAM_LAUNCHER},       {"python", PROGRAM_PYTHON},
    {"python3", PROGRAM_PYTHON},       {"julia", PROGRAM_INTERPRETER},
    {"R", PROGRAM_INTERPRETER},        {"Rscript", PROGRAM_INTERPRETER},
    {"perl", PROGRAM_INTERPRETER},     {"ruby", PROGRAM_INTERPRETER},
    {"lua", PROGRAM_INTERPRETER},      {"octave", PROGRAM_INTERPRETER},
    {"matlab", PROGRAM_INTERPRETER},   {"java", PROGRAM_INTERPRETER},
    {"sh", PROGRAM_STARTER},           {"bash", PROGRAM_STARTER},
    {"dash", PROGRAM_STARTER},         {"ksh", PROGRAM_STARTER},
    {"zsh", PROGRAM_STARTER},          {"csh", PROGRAM_STARTER},
    {"tcsh", PROGRAM_STARTER},         {"env", PROGRAM_STARTER},
    {"numactl", PROGRAM_STARTER},      {"taskset", PROGRAM_STARTER},
    {"nice", PROGRAM_STARTER},         {"ionice", PROGRAM_STARTER},
    {"hwloc-bind", PROGRAM_STARTER},   {"stdbuf", PROGRAM_STARTER},
    {"time", PROGRAM_STARTER},         {"timeout", PROGRAM_STARTER},
    {"gdb", PROGRAM_STARTER},          {"valgrind", PROGRAM_STARTER},
    {"commprof-run", PROGRAM_STARTER},
};

const char *program_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Also accepts suffixes: mpirun.openmpi, python3.12. */
enum program_kind program_kind(const char *path)
{
    const char *name = program_name(path);
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        size_t length = strlen(KNOWN[i].name);
        if (strncmp(name, KNOWN[i].name, length) == 0 && (!name[length] || name[length] == '.'))
            return KNOWN[i].kind;
    }
    return PROGRAM_ORDINARY;
}

/* With -c or -m there is no script. -X and -W take an argument, also at the end of a word of
 * several letters. */
const char *program_python_script(char *const arguments[])
{
    for (; *arguments; arguments++) {
        const char *word = *arguments;
        if (word[0] != '-')
            return word;
        size_t letters = strlen(word + 1);
        if (letters == 0 || strpbrk(word + 1, "-cm"))
            return NULL;
        if (strchr("XW", word[letters]) && !*++arguments)
            return NULL;
    }
    return NULL;
}

static bool can_be_run(const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0 || access(path, X_OK) != 0)
        return false;
    errno = S_ISREG(found.st_mode) ? 0 : EACCES;
    return errno == 0;
}

bool program_find(const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s", name);
    if (strchr(name, '/'))
        return can_be_run(path);
    int error = ENOENT;
    const char *folders = getenv("PATH");
    for (const char *at = folders ? folders : "/bin:/usr/bin"; at;
         at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        int length = (int)strcspn(at, ":");
        snprintf(path, bytes, "%.*s/%s", length ? length : 1, length ? at : ".", name);
        if (can_be_run(path))
            return true;
        if (errno != ENOENT && errno != ENOTDIR)
            error = errno;
    }
    snprintf(path, bytes, "%s", name);
    errno = error;
    return false;
}

/* The next word of a line, terminated in place. */
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, " \t");
    char *end = word + strcspn(word, " \t\r\n");
    *line = *end ? end + 1 : end;
    *end = '\0';
    return *word ? word : NULL;
}

/* #!/usr/bin/env [-S] [NAME=VALUE] python3 */
static char *word_after_env(char *line)
{
    char *word = next_word(&line);
    while (word && (*word == '-' || strchr(word, '=')))
        word = next_word(&line);
    return word;
}

bool program_interpreter(const char *script, char *interpreter, size_t bytes)
{
    char head[PATH_MAX + 1];
    FILE *file = fopen(script, "re");
    if (!file)
        return false;
    size_t length = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    head[length] = '\0';
    bool is_marked = strncmp(head, "#!", 2) == 0;
    if (!is_marked && strlen(head) < length)
        return false; /* has zero bytes: not text */
    char *line = head + 2;
    line[is_marked ? strcspn(line, "\n") : 0] = '\0';
    char *word = is_marked ? next_word(&line) : "/bin/sh";
    if (word && strcmp(program_name(word), "env") == 0)
        word = word_after_env(line);
    snprintf(interpreter, bytes, "%s", word ? word : "");
    return word;
}
