/* A program that uses NCCL only if it is present. The preloaded profiler defines functions with the
 * same names. */
#include <stdio.h>

int ncclGroupStart(void) __attribute__((weak));

int main(void)
{
    printf("%d\n", ncclGroupStart ? ncclGroupStart() : -1);
    return 0;
}
