/* A line of /proc/self/maps: "7f12c000-7f13c000 rw-s 00000000 08:01 1234 /path", and " (deleted)"
 * after it if the file was removed. Only a line feed within the path is escaped. */
#include "mapped_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FIELDS_BYTES = 128 };

struct reader {
    int file;
    char block[1024];
    ssize_t at, end;
};

static int next_byte(struct reader *reader)
{
    if (reader->at == reader->end) {
        reader->end = read(reader->file, reader->block, sizeof reader->block);
        reader->at = 0;
    }
    return reader->end > 0 ? (unsigned char)reader->block[reader->at++] : EOF;
}

/* Reads a line, or as much of it as fits. False at the end. */
static bool read_line(struct reader *reader, char *line, size_t bytes)
{
    size_t used = 0;
    int byte;
    while ((byte = next_byte(reader)) != EOF && byte != '\n')
        if (used + 1 < bytes)
            line[used++] = (char)byte;
    line[used] = '\0';
    return byte != EOF;
}

static void unescape(char *path)
{
    for (char *at = path; (at = strstr(at, "\\012")); at++) {
        *at = '\n';
        memmove(at + 1, at + 4, strlen(at + 4) + 1);
    }
}

static bool take(const char *line, struct mapped_file *file)
{
    static const char REMOVED[] = " (deleted)";
    const char *path = strchr(line, '/');
    size_t length = path ? strlen(path) : 0, ending = sizeof REMOVED - 1;
    file->is_removed = length > ending && strcmp(path + length - ending, REMOVED) == 0;
    length -= file->is_removed ? ending : 0;
    if (length == 0 || length >= sizeof file->path)
        return false;
    memcpy(file->path, path, length);
    file->path[length] = '\0';
    unescape(file->path);
    return true;
}

bool mapped_file_find(const void *address, struct mapped_file *file)
{
    static char
        line[FIELDS_BYTES + PATH_MAX]; /* a thread of the job may have a stack of only 16 kB */
    static struct reader reader;
    char start[24];
    bool found = false;
    reader = (struct reader){.file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    if (reader.file < 0)
        return false;
    int length = snprintf(start, sizeof start, "%08llx-", (unsigned long long)(uintptr_t)address);
    while (!found && read_line(&reader, line, sizeof line))
        found = strncmp(line, start, (size_t)length) == 0;
    close(reader.file);
    return found && take(line, file);
}
