/* Steps and regions by MPI_Pcontrol alone; the argument in place of the name may have any value. */
#include <mpi.h>
#include <sys/mman.h>

#include "check.h"

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_SELF);
}

static void in_region(const void *name)
{
    MPI_Pcontrol(5, name);
    barrier();
    MPI_Pcontrol(6);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        MPI_Pcontrol(4);
        MPI_Pcontrol(5, "forward");
        barrier();
        in_region("layer");
        MPI_Pcontrol(6);
    }
    MPI_Pcontrol(5, "bad");
    in_region(NULL);
    in_region((void *)1234);
    in_region((void *)~(size_t)100);
    in_region("\x01\x02");
    MPI_Pcontrol(5); /* no name */
    MPI_Pcontrol(6);
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    for (int i = 4093; i < 4096; i++)
        pages[i] = 'x';
    in_region(pages + 4093); /* continues on an unreadable page */
    in_region(pages + 4096);
    pages[4095] = '\0';
    in_region(pages + 4093);
    MPI_Pcontrol(6);
    MPI_Pcontrol(6);
    MPI_Finalize();
    return 0;
}
