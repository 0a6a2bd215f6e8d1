/* Functions that end a program without its exit handlers. A ledger whose process has only vanished
 * was killed, as far as anybody can tell; so these say first that the program leaves by itself.
 *
 * They may be called in signal handlers and in forked children of threaded programs, where dlsym
 * could wait for a lock, so the real functions are looked up when the library is loaded. */
#include "runtime.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static struct {
    void (*_exit)(int status);
    int (*execve)(const char *path, char *const words[], char *const variables[]);
    int (*execv)(const char *path, char *const words[]);
    int (*execvp)(const char *file, char *const words[]);
    int (*execvpe)(const char *file, char *const words[], char *const variables[]);
    int (*fexecve)(int descriptor, char *const words[], char *const variables[]);
} real;

/* The constructors of other libraries may call these before ours has run. */
static __attribute__((constructor)) void find_real_functions(void)
{
    real._exit = (__typeof__(real._exit))dlsym(RTLD_NEXT, "_exit");
    real.execv = (__typeof__(real.execv))dlsym(RTLD_NEXT, "execv");
    real.execvp = (__typeof__(real.execvp))dlsym(RTLD_NEXT, "execvp");
    real.execvpe = (__typeof__(real.execvpe))dlsym(RTLD_NEXT, "execvpe");
    real.fexecve = (__typeof__(real.fexecve))dlsym(RTLD_NEXT, "fexecve");
    real.execve = (__typeof__(real.execve))dlsym(RTLD_NEXT, "execve");
}

EXPORT void _exit(int status)
{
    runtime_leaves();
    if (real._exit)
        real._exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status)
{
    _exit(status);
}

#define EXEC(NAME, PARAMETERS, ARGUMENTS) \
    EXPORT int NAME PARAMETERS            \
    {                                     \
        if (!real.execve)                 \
            find_real_functions();        \
        bool leaves = runtime_leaves();   \
        int error = real.NAME ARGUMENTS;  \
        if (leaves)                       \
            runtime_stays();              \
        return error;                     \
    }
EXEC(execve, (const char *path, char *const words[], char *const variables[]),
     (path, words, variables))
EXEC(execv, (const char *path, char *const words[]), (path, words))
EXEC(execvp, (const char *file, char *const words[]), (file, words))
EXEC(execvpe, (const char *file, char *const words[], char *const variables[]),
     (file, words, variables))
EXEC(fexecve, (int descriptor, char *const words[], char *const variables[]),
     (descriptor, words, variables))

/* The words up to NULL as an array on the caller's stack: a forked child must not allocate. */
#define TAKE_WORDS(FIRST)                                         \
    va_list arguments;                                            \
    size_t count = 1;                                             \
    va_start(arguments, FIRST);                                   \
    while (va_arg(arguments, char *))                             \
        count++;                                                  \
    va_end(arguments);                                            \
    char **words = __builtin_alloca((count + 1) * sizeof *words); \
    words[0] = (char *)(uintptr_t)(FIRST);                        \
    va_start(arguments, FIRST);                                   \
    for (size_t i = 1; i <= count; i++)                           \
    words[i] = va_arg(arguments, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
    TAKE_WORDS(first);
    va_end(arguments);
    return execv(path, words);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    TAKE_WORDS(first);
    va_end(arguments);
    return execvp(file, words);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    TAKE_WORDS(first);
    char *const *variables = va_arg(arguments, char *const *);
    va_end(arguments);
    return execve(path, words, variables);
}
