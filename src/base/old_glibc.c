/* Functions that glibc got after 2.17 and that its headers put in place of older ones: stat and its kin (2.33, before that inline
 * functions of the headers) and the readers of numbers that know C23's binary digits (2.38). Defined here they are the library's
 * own, so that one built on a new glibc loads on an old one. The other half, functions that only moved from libdl and libpthread to
 * libc, is in the Makefile.
 *
 * No header is included that declares what is defined here: it would redirect the names once more. */
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
/* On both machines struct stat is the kernel's. */
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
