// A region as an object: an exception ends it as well.
#include <stdexcept>

#include <commprof.h>
#include <mpi.h>

namespace {

class Region {
public:
    explicit Region(const char *name)
    {
        commprof_region_begin(name);
    }
    ~Region()
    {
        commprof_region_end();
    }
};

void fails()
{
    Region region("fails");
    MPI_Barrier(MPI_COMM_SELF);
    throw std::runtime_error("as planned");
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    ::commprof_step();
    try {
        Region region("tries");
        fails();
    } catch (const std::runtime_error &) {
        MPI_Barrier(MPI_COMM_SELF);
    }
    MPI_Finalize();
    return 0;
}
