/* Lets commprof-run start on a glibc before 2.34, though it was linked with a newer one: the start-up code of the new one calls
 * __libc_start_main, whose version has changed. It reaches this one, which calls the function by its old version; that takes what
 * the new start-up code passes. Constructors of the program itself do not run on an old glibc then: it has none. */
#include "base/old_glibc.h"

typedef void (*procedure)(void);
typedef int (*main_function)(int count, char **arguments, char **environment);

__asm__(".symver libc_start_main, __libc_start_main@" OLDEST_GLIBC);
int libc_start_main(main_function start, int count, char **arguments, procedure begin, procedure end, procedure loader_end,
                    void *stack_end);

__attribute__((visibility("hidden"))) int __libc_start_main(main_function start, int count, char **arguments, procedure begin,
                                                            procedure end, procedure loader_end, void *stack_end);
int __libc_start_main(main_function start, int count, char **arguments, procedure begin, procedure end, procedure loader_end,
                      void *stack_end)
{
    return libc_start_main(start, count, arguments, begin, end, loader_end, stack_end);
}
