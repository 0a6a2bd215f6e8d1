"""Switches counting as Python does it: without a second argument."""

from mpi4py import MPI

one = MPI.COMM_SELF
for level, times in ((1, 1), (0, 10), (1, 2), (0, 20), (0, 40), (1, 4), (1, 8), (0, 80)):
    MPI.Pcontrol(level)
    for _ in range(times):
        one.Barrier()
