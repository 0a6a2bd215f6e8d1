/* A program that would use NCCL where there is one. Preloaded, the profiler has functions of that name. */
#include <stdio.h>

int ncclGroupStart(void) __attribute__((weak));

int main(void)
{
    printf("%d\n", ncclGroupStart ? ncclGroupStart() : -1);
    return 0;
}
