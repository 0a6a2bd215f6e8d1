/* constructing SITES PLUGIN...: one thread loads plugins whose constructors call MPI, while another
 * calls MPI from places in a library that nobody has called from. -DPLUGIN and -DSITES make these
 * libraries. */
#include <dlfcn.h>
#include <pthread.h>

#include <mpi.h>

#include "check.h"

static inline void call_mpi(void)
{
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

#ifdef PLUGIN
__attribute__((constructor)) static void construct(void)
{
    call_mpi();
}
#elif defined(SITES)
#define SITE MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
#define SITES_8 SITE SITE SITE SITE SITE SITE SITE SITE
#define SITES_64 SITES_8 SITES_8 SITES_8 SITES_8 SITES_8 SITES_8 SITES_8 SITES_8
void sites(void)
{
    int found;
    SITES_64 SITES_64 SITES_64 SITES_64 SITES_64 SITES_64 SITES_64 SITES_64
}
#else
static void *load(void *plugins)
{
    for (char **plugin = plugins; *plugin; plugin++)
        CHECK(dlopen(*plugin, RTLD_NOW));
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t loader;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE && argc > 2);
    void *library = dlopen(argv[1], RTLD_NOW);
    CHECK(library);
    void (*sites)(void) = (void (*)(void))dlsym(library, "sites");
    CHECK(sites);
    CHECK(pthread_create(&loader, NULL, load, argv + 2) == 0);
    sites();
    pthread_join(loader, NULL);
    MPI_Finalize();
    return 0;
}
#endif
