/* A program with libtorch_python.so, linked with libtorch_cpu.so: a double by their names. PART
 * selects what is compiled. */
#if PART == 0
#include <dlfcn.h>
#include <stddef.h>

int main(int argc, char **argv)
{
    return argc < 2 || dlopen(argv[1], RTLD_NOW) == NULL;
}
#elif PART == 1
int add(int);
int call_add(void);

int call_add(void)
{
    return add(1);
}
#else
int add(int);

int add(int number)
{
    return number + 1;
}
#endif
