"""mpi4py starts MPI and makes 1 Barrier; cffi makes 200 Allreduces of 8,000 bytes,
in its ABI mode."""

import cffi
from mpi4py import MPI

ffi = cffi.FFI()
HANDLE = "void *" if MPI._sizeof(MPI.COMM_WORLD) == ffi.sizeof("void *") else "int"
ffi.cdef(f"int MPI_Allreduce(void *, void *, int, {HANDLE}, {HANDLE}, {HANDLE});")


def library_of_mpi4py():
    """The one that is loaded, whatever its name is."""
    paths = [
        line.split()[-1] for line in open("/proc/self/maps") if "/libmpi" in line and ".so" in line
    ]
    return next(
        library
        for library in map(ffi.dlopen, dict.fromkeys(paths))
        if hasattr(library, "MPI_Allreduce")
    )


def handle(of_mpi4py):
    return ffi.cast(f"{HANDLE} *" if HANDLE == "int" else "void **", MPI._addressof(of_mpi4py))[0]


MPI.COMM_WORLD.Barrier()
library = library_of_mpi4py()
sent, received = ffi.new("double[]", 1000), ffi.new("double[]", 1000)
for _ in range(200):
    library.MPI_Allreduce(
        sent, received, 1000, handle(MPI.DOUBLE), handle(MPI.SUM), handle(MPI.COMM_WORLD)
    )
