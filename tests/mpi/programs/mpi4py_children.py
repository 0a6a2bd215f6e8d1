"""Subprocesses and worker processes of a Python program that uses MPI. None of them is a rank."""

import multiprocessing
import os
import subprocess
import sys

from mpi4py import MPI


def square(number: int) -> int:
    return number * number


def main() -> None:
    comm = MPI.COMM_WORLD
    comm.Barrier()
    said = subprocess.run(
        [sys.executable, "-c", "print('said by a child')"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    comm.Barrier()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        squares = pool.map(square, range(10))
    comm.Barrier()
    child = os.fork()
    if child == 0:
        os._exit(0)  # mpi4py would finalize MPI in the child on a plain exit, and hang
    os.waitpid(child, 0)
    comm.Barrier()
    sys.stdout.write(f"rank {comm.rank} heard: {said.stdout.strip()}, {squares}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
