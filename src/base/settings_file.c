#include "settings_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool is_null_device(const struct stat *found)
{
    return S_ISCHR(found->st_mode) && found->st_rdev == makedev(1, 3);
}

/* Returns NULL, or why the file is not used. It does not wait for a writer of a pipe, nor take a
 * terminal's input. */
static const char *read_all(const char *path, char *text, size_t bytes)
{
    struct stat found;
    errno = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return strerror(errno);
    const char *why = NULL;
    size_t used = 0;
    ssize_t got = 1;
    if (fstat(file, &found) != 0 || !(S_ISREG(found.st_mode) || is_null_device(&found)))
        why = "not a regular file";
    while (!why && used < bytes && got > 0) {
        got = read(file, text + used, bytes - used);
        if (got < 0)
            why = strerror(errno);
        else
            used += (size_t)got;
    }
    close(file);
    if (!why && used == bytes)
        why = "larger than 16 kB";
    text[why ? 0 : used] = '\0';
    for (size_t i = 0; !why && i < used; i++)
        if (iscntrl((unsigned char)text[i]) && !strchr("\t\r\n", text[i] ? text[i] : 1))
            why = "not a text file";
    return why;
}

static char *trimmed(char *text)
{
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

static void note_fault(struct settings_file *file, unsigned line, const char *what)
{
    if (*file->fault)
        file->more_faults++;
    else
        snprintf(file->fault, sizeof file->fault, "line %u: %s", line, what);
}

static const char *take_line(char *line, const char *(*take)(const char *name, const char *value))
{
    char *equals = strchr(line, '=');
    if (!*line || *line == '#')
        return NULL;
    if (!equals)
        return "not name = value";
    *equals = '\0';
    return take(trimmed(line), trimmed(equals + 1));
}

void settings_file_read(struct settings_file *file, const char *path, bool may_be_missing,
                        const char *(*take)(const char *name, const char *value))
{
    file->fault[0] = '\0';
    file->more_faults = 0;
    const char *why = read_all(path, file->text, sizeof file->text);
    if (why) {
        bool is_missing = errno == ENOENT || errno == ENOTDIR;
        file->text[0] = '\0';
        if (!may_be_missing || !is_missing)
            snprintf(file->fault, sizeof file->fault, "it is not used: %s", why);
        return;
    }
    unsigned number = 1;
    for (char *line = file->text, *next; line; line = next, number++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        why = take_line(trimmed(line), take);
        if (why)
            note_fault(file, number, why);
    }
}
