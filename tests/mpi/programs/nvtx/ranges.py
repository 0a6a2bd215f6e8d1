"""Ranges by the Python package nvtx: a decorator, objects, and functions of the default domain."""

import nvtx
from mpi4py import MPI


def barrier() -> None:
    MPI.COMM_SELF.Barrier()


@nvtx.annotate()
def forward() -> None:
    barrier()


barrier()
with nvtx.annotate("epoch"):
    for _ in range(3):
        forward()
    for step in range(2):
        with nvtx.annotate(f"step {step}"):
            barrier()
    barrier()
