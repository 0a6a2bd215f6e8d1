/* Look-ups by dlsym whose result depends on the caller: RTLD_DEFAULT and RTLD_NEXT, called from the
 * program, from a library that it is linked with, and from one that it opens privately. Each
 * defines `which` and `MPI_which`, with different results; only the opened one defines
 * `MPI_private`. All three are compiled from this file; PART selects one. */
#include <dlfcn.h>
#include <stdio.h>

int which(void);
int MPI_which(void);
const char *asked_by_first(void *handle, const char *name);
const char *asked_by_opened(void *handle, const char *name);

int which(void)
{
    return PART;
}

int MPI_which(void)
{
    return 10 + PART;
}

static inline const char *answer(int (*function)(void))
{
    static char text[4][16];
    static int at;
    char *said = text[at++ % 4];
    if (function)
        snprintf(said, 16, "%d", function());
    else
        snprintf(said, 16, "none (%s)", dlerror() ? "said" : "silent");
    return said;
}

#if PART == 0
static void print_answers(const char *name)
{
    void *opened = dlopen("libopened.so", RTLD_NOW | RTLD_LOCAL);
    void *self = dlopen(NULL, RTLD_NOW);
    const char *(*by_opened)(void *, const char *) =
        (const char *(*)(void *, const char *))dlsym(opened, "asked_by_opened");
    printf("%s by program: default %s, ", name, answer((int (*)(void))dlsym(RTLD_DEFAULT, name)));
    printf("next %s, ", answer((int (*)(void))dlsym(RTLD_NEXT, name)));
    printf("self %s, ", answer((int (*)(void))dlsym(self, name)));
    printf("opened %s\n", answer((int (*)(void))dlsym(opened, name)));
    printf("%s by first: default %s, next %s\n", name, asked_by_first(RTLD_DEFAULT, name),
           asked_by_first(RTLD_NEXT, name));
    printf("%s by opened: default %s, next %s\n", name, by_opened(RTLD_DEFAULT, name),
           by_opened(RTLD_NEXT, name));
}

int main(void)
{
    print_answers("which");
    print_answers("MPI_which");
    print_answers("MPI_private");
    print_answers("MPI_Init");
    return 0;
}
#elif PART == 1
const char *asked_by_first(void *handle, const char *name)
{
    int (*function)(void) = (int (*)(void))dlsym(handle, name);
    return answer(function);
}
#elif PART == 3
int MPI_private(void);
int MPI_private(void)
{
    return 33;
}

const char *asked_by_opened(void *handle, const char *name)
{
    int (*function)(void) = (int (*)(void))dlsym(handle, name);
    return answer(function);
}
#endif
