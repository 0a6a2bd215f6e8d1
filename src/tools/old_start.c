/* Lets commprof-run start on a glibc before 2.34, even if it was linked with a newer one. The newer
 * start-up code calls a newer version of __libc_start_main. This definition intercepts that call
 * and calls the old version, which accepts the same arguments. On an old glibc the program's own
 * constructors would then not run, but commprof-run has none. */
#include "base/old_glibc.h"

typedef void (*procedure)(void);
typedef int (*main_function)(int count, char **arguments, char **environment);

__asm__(".symver libc_start_main, __libc_start_main@" OLDEST_GLIBC);
int libc_start_main(main_function start, int count, char **arguments, procedure begin,
                    procedure end, procedure loader_end, void *stack_end);

__attribute__((visibility("hidden"))) int __libc_start_main(main_function start, int count,
                                                            char **arguments, procedure begin,
                                                            procedure end, procedure loader_end,
                                                            void *stack_end);
int __libc_start_main(main_function start, int count, char **arguments, procedure begin,
                      procedure end, procedure loader_end, void *stack_end)
{
    return libc_start_main(start, count, arguments, begin, end, loader_end, stack_end);
}
