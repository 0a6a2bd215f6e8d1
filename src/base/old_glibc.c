/* Functions that newer glibc headers (after 2.17) use in place of older ones: stat, lstat and fstat
 * (2.33; before, they were inline), and number parsers that accept C23's binary digits (2.38).
 * Because the library defines its own, a build on a new glibc loads on an old one. Functions that
 * only moved from libdl and libpthread to libc are handled in the Makefile.
 *
 * No header that declares these functions is included: it would redirect the names again. */
#include <fcntl.h>
#include <features.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __GLIBC_PREREQ
#define __GLIBC_PREREQ(MAJOR, MINOR) 0 /* another C library */
#endif
#define OURS __attribute__((visibility("hidden")))

#if __GLIBC_PREREQ(2, 33) && (defined(__x86_64__) || defined(__aarch64__))
/* On both architectures struct stat is the kernel's. */
struct stat;
OURS int stat(const char *restrict path, struct stat *restrict found);
OURS int lstat(const char *restrict path, struct stat *restrict found);
OURS int fstat(int file, struct stat *found);

int stat(const char *restrict path, struct stat *restrict found)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, 0);
}

int lstat(const char *restrict path, struct stat *restrict found)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}

int fstat(int file, struct stat *found)
{
    return (int)syscall(SYS_fstat, file, found);
}
#endif

#if __GLIBC_PREREQ(2, 38)
long strtol(const char *restrict text, char **restrict end, int base);
unsigned long long strtoull(const char *restrict text, char **restrict end, int base);
int vsscanf(const char *restrict text, const char *restrict format, va_list values);
OURS long __isoc23_strtol(const char *restrict text, char **restrict end, int base);
OURS unsigned long long __isoc23_strtoull(const char *restrict text, char **restrict end, int base);
OURS int __isoc23_sscanf(const char *restrict text, const char *restrict format, ...);

long __isoc23_strtol(const char *restrict text, char **restrict end, int base)
{
    return strtol(text, end, base);
}

unsigned long long __isoc23_strtoull(const char *restrict text, char **restrict end, int base)
{
    return strtoull(text, end, base);
}

int __isoc23_sscanf(const char *restrict text, const char *restrict format, ...)
{
    va_list values;
    va_start(values, format);
    int read = vsscanf(text, format, values);
    va_end(values);
    return read;
}
#endif
