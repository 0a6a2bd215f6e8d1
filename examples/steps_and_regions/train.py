"""The same as train.c in Python."""

import commprof_marks
import numpy
from mpi4py import MPI

EPOCHS, STEPS, PARAMETERS = 2, 20, 1 << 18

gradient = numpy.zeros(PARAMETERS, dtype=numpy.float32)


def step() -> None:
    commprof_marks.step()
    for _ in range(4):
        gradient[:] = gradient * 0.5 + 1.0
    with commprof_marks.region("average gradients"):
        MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, gradient)


def evaluate() -> None:
    with commprof_marks.region("evaluate"):
        MPI.COMM_WORLD.Allreduce(gradient[:1].astype(numpy.float64), numpy.zeros(1))
        MPI.COMM_WORLD.Barrier()


for _ in range(EPOCHS):
    with commprof_marks.region("epoch"):
        for _ in range(STEPS):
            step()
        evaluate()
