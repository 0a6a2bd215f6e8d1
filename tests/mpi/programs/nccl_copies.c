/* nccl_copies LIBRARY...: opens each privately, lets it make one Bcast more than the previous one,
 * and checks that its own NCCL got them. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        long (*operate)(int) = library ? (long (*)(int))dlsym(library, "operate") : NULL;
        if (!operate) {
            fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
        long made = operate(i);
        if (made != i) {
            fprintf(stderr, "%s: %ld operations have reached its NCCL, not %d\n", argv[i], made, i);
            return 1;
        }
    }
    return 0;
}
