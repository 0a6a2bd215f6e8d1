"""mpi4py_beside.py ctypes|cffi: mpi4py starts MPI and makes 1 Barrier; the other (cffi in its ABI
mode) makes 200 Allreduces of 8,000 bytes. numpy imports ctypes in every program that uses it."""

import ctypes
import sys

from mpi4py import MPI

POINTERS = MPI._sizeof(MPI.COMM_WORLD) == ctypes.sizeof(ctypes.c_void_p)
ARGUMENTS = (MPI.DOUBLE, MPI.SUM, MPI.COMM_WORLD)


def allreduce_of_mpi4py(opened):
    """A function of the library that is loaded, whatever its name is."""
    lines = [line for line in open("/proc/self/maps") if "/libmpi" in line and ".so" in line]
    libraries = map(opened, dict.fromkeys(line.split()[-1] for line in lines))
    return next(each for each in libraries if hasattr(each, "MPI_Allreduce")).MPI_Allreduce


MPI.COMM_WORLD.Barrier()
if sys.argv[1] == "ctypes":
    kind = ctypes.c_void_p if POINTERS else ctypes.c_int
    allreduce = allreduce_of_mpi4py(ctypes.CDLL)
    buffers = [(ctypes.c_double * 1000)() for _ in range(2)]
    handles = [kind.from_address(MPI._addressof(each)) for each in ARGUMENTS]
else:
    import cffi

    ffi, kind = cffi.FFI(), "void *" if POINTERS else "int"
    ffi.cdef(f"int MPI_Allreduce(void *, void *, int, {kind}, {kind}, {kind});")
    allreduce = allreduce_of_mpi4py(ffi.dlopen)
    buffers = [ffi.new("double[]", 1000) for _ in range(2)]
    handles = [ffi.cast(f"{kind} *", MPI._addressof(each))[0] for each in ARGUMENTS]
for _ in range(200):
    allreduce(*buffers, 1000, *handles)
