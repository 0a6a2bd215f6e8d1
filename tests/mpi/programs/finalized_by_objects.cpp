// finalized_by_objects WAY: as finalized_late.c, in the destructor of a C++ object: a static one, a
// thread's, or that of a library (built with -DLIBRARY and linked).
#include <cstring>

#include <mpi.h>

namespace
{

struct Environment {
    bool is_in_use = false;

    ~Environment()
    {
        int is_finalized;
        MPI_Finalized(&is_finalized);
        if (!is_in_use || is_finalized)
            return;
        double sent[2] = {1, 2}, received[2];
        MPI_Allreduce(sent, received, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Finalize();
    }
};

Environment of_process;
thread_local Environment of_thread;

} // namespace

#ifdef LIBRARY
void library_begin()
{
    MPI_Init(nullptr, nullptr);
    of_process.is_in_use = true;
}
#else
#pragma weak _Z13library_beginv
void library_begin();

int main(int argc, char **argv)
{
    if (argc == 2 && std::strcmp(argv[1], "library") == 0)
        library_begin();
    else {
        MPI_Init(&argc, &argv);
        (argc == 2 && std::strcmp(argv[1], "thread") == 0 ? of_thread : of_process).is_in_use = true;
    }
    for (int i = 0; i < 6; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
#endif
