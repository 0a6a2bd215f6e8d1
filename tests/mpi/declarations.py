"""What an MPI library's header declares, so that a test of a later standard's function says that it is missing, and skips."""

from __future__ import annotations

import subprocess
from functools import lru_cache

import pytest

from .harness import Mpi


@lru_cache
def declared_by(mpi_name: str) -> str:
    command = [f"mpicc.{mpi_name}", "-E", "-P", "-x", "c", "-"]
    return subprocess.run(command, input="#include <mpi.h>\n", check=True, capture_output=True, text=True).stdout


def skip_without(mpi: Mpi, function: str) -> None:
    if f" {function}(" not in declared_by(mpi.name):
        pytest.skip(f"{mpi.name} has no {function}")
