"""opens_mpi_ctypes.py LIBRARY: MPI through ctypes. 5 Barriers, 4 Bcasts of 8 bytes, and 1 Allreduce
of 8 bytes per rank."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])  # RTLD_LOCAL
IS_OPEN_MPI = hasattr(library, "ompi_mpi_comm_world")


def handle(number: int, symbol: str):
    return (
        ctypes.byref(ctypes.c_char.in_dll(library, symbol)) if IS_OPEN_MPI else ctypes.c_int(number)
    )


world = handle(0x44000000, "ompi_mpi_comm_world")
double = handle(0x4C00080B, "ompi_mpi_double")
total = handle(0x58000003, "ompi_mpi_op_sum")

library.MPI_Init(None, None)
rank = ctypes.c_int()
library.MPI_Comm_rank(world, ctypes.byref(rank))
for _ in range(5):
    library.MPI_Barrier(world)
value = ctypes.c_double(rank.value + 1.0)
for _ in range(4):
    library.MPI_Bcast(ctypes.byref(value), 1, double, 0, world)
result = ctypes.c_double()
library.MPI_Allreduce(ctypes.byref(value), ctypes.byref(result), 1, double, total, world)
sys.stdout.write(f"rank {rank.value}: {result.value}, {hasattr(library, 'MPI_No_such_function')}\n")
library.MPI_Finalize()
