#include "names.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, NAMES = 256 };

/* A cache of the names in one buffer: the same few recur, and a copy costs a system call. */
static struct {
    const char *theirs;
    char text[PAGE_BYTES];
} names[NAMES];

/* Returns how many bytes could be read. They span two pages at most; both can be read, the first
 * only, or none. */
static ssize_t copy(char *ours, const char *theirs, size_t bytes)
{
    size_t first_bytes = PAGE_BYTES - (uintptr_t)theirs % PAGE_BYTES;
    first_bytes = first_bytes < bytes ? first_bytes : bytes;
    struct iovec to = {ours, bytes};
    struct iovec from[] = {{(void *)theirs, first_bytes},
                           {(void *)(theirs + first_bytes), bytes - first_bytes}};
    ssize_t copied = process_vm_readv(getpid(), &to, 1, from, 2, 0);
    if (copied >= 0 || errno == EFAULT)
        return copied;
    /* The call is forbidden here, as in some sandboxes: trust CUPTI, as other tools always do. */
    return (ssize_t)strnlen(strncpy(ours, theirs, bytes), bytes);
}

const char *names_read(const char *theirs)
{
    unsigned place = (unsigned)(((uintptr_t)theirs >> 3) * 2654435761u >> 8) % NAMES;
    char *text = names[place].text;
    if (!theirs)
        return NULL;
    if (names[place].theirs == theirs)
        return text;
    names[place].theirs = NULL;
    ssize_t copied = copy(text, theirs, PAGE_BYTES - 1);
    if (copied <= 0)
        return NULL;
    text[copied] = '\0';
    names[place].theirs = theirs;
    return text;
}

void names_forget(void)
{
    for (unsigned i = 0; i < NAMES; i++)
        names[i].theirs = NULL;
}
