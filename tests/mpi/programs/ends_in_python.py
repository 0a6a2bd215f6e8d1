"""ends_in_python.py ROUNDS exception|exit|_exit VICTIM: communicates for ROUNDS rounds, then
rank VICTIM (-1: all ranks) ends in this way.

Counts its calls in the file $TRUTH/<pid>, as ends.c does. mpi4py calls MPI_Finalize itself.
"""

import mmap
import os
import struct
import sys
from contextlib import contextmanager

CALLS = ("MPI_Init_thread", "MPI_Allreduce", "MPI_Sendrecv")
ROW = struct.Struct("<24sQQ")

with open(f"{os.environ['TRUTH']}/{os.getpid()}", "x+b") as file:
    file.write(b"".join(ROW.pack(call.encode(), 0, 0) for call in CALLS))
    file.flush()
    truth = mmap.mmap(file.fileno(), 0)
numbers = memoryview(truth).cast("Q")  # of each row: three words of name, begun, returned


@contextmanager
def truly(call):
    """Around one call: its two counts."""
    begun = CALLS.index(call) * ROW.size // 8 + 3
    numbers[begun] += 1
    yield
    numbers[begun + 1] += 1


with truly("MPI_Init_thread"):
    from mpi4py import MPI

rounds, how, victim = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
world = MPI.COMM_WORLD
for size in range(rounds):
    mine, theirs = bytearray(size), bytearray(size)
    with truly("MPI_Allreduce"):
        world.Allreduce(mine, theirs, MPI.BOR)
    with truly("MPI_Sendrecv"):
        world.Sendrecv(
            mine, (world.rank + 1) % world.size, 0, theirs, (world.rank - 1) % world.size, 0
        )

if victim in (-1, world.rank):
    if how == "exception":
        raise RuntimeError("uncaught")
    if how == "_exit":
        os._exit(3)
    sys.exit(3)
world.Barrier()
