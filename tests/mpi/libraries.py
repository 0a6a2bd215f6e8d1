"""The MPI libraries that the tests run under: Debian's two, or those that TEST_MPIS names (words):
the same two as `openmpi` and `mpich`, any other as setup/mpis.sh lists it, which must have put it
into build/mpis."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "build/mpis"
SYSTEM_PYTHON = "/usr/bin/python3"  # the distribution's: the one whose mpi4py fits its Open MPI


class Mpi(NamedTuple):
    """An MPI library, and how programs are compiled for it and started."""

    name: str
    family: str  # openmpi, mpich or impi (Intel MPI)
    abi: str  # as the fact table calls it
    mpicc: str
    mpifort: str
    mpirun: tuple[str, ...]
    python: str
    environment: dict[str, str]

    @property
    def missing(self) -> str | None:
        """Name of a tool that is not installed, if any."""
        return next((tool for tool in (self.mpicc, self.mpirun[0]) if not shutil.which(tool)), None)

    @property
    def has_fortran(self) -> bool:
        return shutil.which(self.mpifort) is not None

    def require_fortran(self, program: str) -> None:
        """Skips a test of a Fortran program that cannot be compiled for this library here."""
        if not self.has_fortran:
            pytest.skip(f"{self.name} has no Fortran here")
        if self.family == "impi" and program.endswith("f08"):
            pytest.skip("Intel MPI has mpi_f08 for Intel's compiler alone")

    @property
    def has_mpi4py(self) -> bool:
        if not shutil.which(self.python):
            return False
        find = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('mpi4py'))"
        return subprocess.run([self.python, "-c", find]).returncode == 0

    def has(self, function: str) -> bool:
        """Whether its mpi.h declares it; what MPI_VERSION says is no answer (Open MPI 5 has
        sessions and says 3.1)."""
        return function in declared_by(self.mpicc)

    def require(self, function: str) -> None:
        """Skips a test of a function that this library is too old for."""
        if not self.has(function):
            pytest.skip(f"{self.name} has no {function}")

    def fault(self, program: str, arguments: tuple[str, ...]) -> str | None:
        """Known fault of this library with a program, if any."""
        command = " ".join([program, *arguments])
        known = (
            fault
            for fault in FAULTS
            if re.fullmatch(fault.library, self.name) and re.fullmatch(fault.program, command)
        )
        return next((f"{self.name}: {fault.what}" for fault in known), None)

    @property
    def soname(self) -> str:
        if self.name.endswith("-abi"):
            return "libmpi_abi.so.1"
        if self.name == "mpich":
            return "libmpich.so.12"
        return f"libmpi.so.{40 if self.family == 'openmpi' else 12}"

    def require_soname_in_search_path(self) -> None:
        """Skips a test of a program that opens the library by its bare name."""
        if self.name not in ("openmpi", "mpich"):
            pytest.skip(f"{self.name} is not where the dynamic linker looks")

    @property
    def says(self) -> str:
        """Beginning of MPI_Get_library_version's text."""
        return {"openmpi": "Open MPI v", "mpich": "MPICH Version", "impi": "Intel(R) MPI Library"}[
            self.family
        ]


@lru_cache
def declared_by(mpicc: str) -> frozenset[str]:
    source = str(REPOSITORY / "tests/abi/include_mpi.c")
    text = subprocess.check_output([mpicc, "-E", "-P", source], text=True)
    return frozenset(re.findall(r"\bint\s+(MPI_\w+)\s*\(", text))


class Fault(NamedTuple):
    """Fault of a library without any profiler, so that a test program tells nothing there."""

    library: str  # a pattern of names
    program: str  # a pattern of programs with their arguments
    what: str


FAULTS = [
    Fault(*map(str.strip, line.split(" / ")))
    for line in r"""
mpich-3\.4\.3 / in_place_nonblocking.* / MPI_Iscatterv refuses a null datatype that means nothing
mpich-3\.4\.3|impi-2021.* / freed_early / crashes when a communicator is freed in a receive on it
mpich-4\.0\.3 / session_and_world / most runs end in a failed assertion of MPI's
impi-2021.* / session_and_world / MPI_Init is refused after MPI_Session_init
impi-2021\.19\.0 / talkative|surroundings / MPI_Init fails after output to stdout
impi-2021.*-abi / error_codes errors_return / MPI_ERRORS_RETURN has no effect
impi-2021.*-abi / null_pointers / MPI_ERRORS_RETURN has no effect: a null pointer ends the job
impi-2021.*-abi / odds_and_ends / MPI_ERRORS_RETURN has no effect: a port that fails ends the job
impi-2021.*-abi / collectives_persistent.* / a persistent scatter fails when it is started again
impi-2021.*-abi / files.* / the status of MPI_File_read and its like says that nothing was read
impi-2021.*|mpich-3\.4\.3 / guarded_statuses / needs more than one Test to find what has arrived
impi-2021.*|mpich-3\.4\.3 / generalized / leaves a freed receive empty when a later message is there
mpich-5\.0\.2-abi|mpich-3\.4\.3 / null_pointers / crashes on a null array of requests
mpich-5\.0\.2-abi / guarded_statuses / writes to the handle of a request that is incomplete
""".strip().splitlines()
]


ABI_OF_FAMILY = {"openmpi": "Open MPI", "mpich": "MPICH", "impi": "MPICH"}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SHARED_MEMORY = {"4": "self,vader", "5": "self,sm"}  # what Open MPI calls it


def launch_options(family: str, major_version: str) -> tuple[str, ...]:
    """Without `pml`, Open MPI looks for networks at each start. (tune needs its `monitoring`.)"""
    if family != "openmpi":
        return ()
    options = "--oversubscribe --mca mpi_yield_when_idle 1 --mca pml ^cm,ucx --mca btl"
    return (*options.split(), SHARED_MEMORY[major_version])


def of_the_distribution(name: str) -> Mpi:
    return Mpi(
        name,
        family=name,
        abi=ABI_OF_FAMILY[name],
        mpicc=f"mpicc.{name}",
        mpifort=f"mpifort.{name}",
        mpirun=(f"mpirun.{name}", *launch_options(name, "4")),
        python=SYSTEM_PYTHON
        if name == "openmpi"
        else "the distribution's mpi4py is built for Open MPI",
        environment=AS_ROOT if name == "openmpi" else {},
    )


def of_setup_mpis(name: str) -> Mpi:
    family, version = name.split("-")[:2]
    tool = lambda name_of_tool: str(FOLDER / name / name_of_tool)  # noqa: E731
    return Mpi(
        name,
        family,
        abi="MPI standard ABI" if name.endswith("-abi") else ABI_OF_FAMILY[family],
        mpicc=tool("mpicc"),
        mpifort=tool("mpifort"),
        mpirun=(tool("mpirun"), *launch_options(family, version[0])),
        python=tool("python3"),
        environment=AS_ROOT if family == "openmpi" else {},
    )


def libraries() -> list[Mpi]:
    names = os.environ.get("TEST_MPIS", "openmpi mpich").split()
    return [
        of_the_distribution(name) if name in ("openmpi", "mpich") else of_setup_mpis(name)
        for name in names
    ]


# The distribution's libraries, for a test that needs one of them in particular.
OPEN_MPI = of_the_distribution("openmpi")
MPICH = of_the_distribution("mpich")
