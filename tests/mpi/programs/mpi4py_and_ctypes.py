"""mpi4py starts MPI and makes 1 Barrier; ctypes makes 200 Allreduces of 8,000 bytes. numpy imports
ctypes in every program that uses it."""

import ctypes

from mpi4py import MPI


def library_of_mpi4py() -> ctypes.CDLL:
    """The one that is loaded, whatever its name is."""
    paths = [
        line.split()[-1] for line in open("/proc/self/maps") if "/libmpi" in line and ".so" in line
    ]
    return next(
        library
        for library in map(ctypes.CDLL, dict.fromkeys(paths))
        if hasattr(library, "MPI_Allreduce")
    )


def handle(of_mpi4py: object) -> ctypes.c_void_p:
    type_of_handle = (
        ctypes.c_void_p
        if MPI._sizeof(of_mpi4py) == ctypes.sizeof(ctypes.c_void_p)
        else ctypes.c_int
    )
    return type_of_handle.from_address(MPI._addressof(of_mpi4py))


MPI.COMM_WORLD.Barrier()
allreduce = library_of_mpi4py().MPI_Allreduce
sent, received = (ctypes.c_double * 1000)(), (ctypes.c_double * 1000)()
for _ in range(200):
    allreduce(sent, received, 1000, handle(MPI.DOUBLE), handle(MPI.SUM), handle(MPI.COMM_WORLD))
