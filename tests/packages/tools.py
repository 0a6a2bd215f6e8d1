"""Common parts of the tests of packages."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mpi.harness import compile_program, unprofiled_environment
from mpi.libraries import AS_ROOT, OPEN_MPI, REPOSITORY


def say(*command: object, folder: Path = REPOSITORY, **environment: str) -> str:
    surroundings = unprofiled_environment() | AS_ROOT | environment
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=surroundings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout


def check_profiles(programs: Path, folder: Path) -> None:
    """With the programs of a folder: a job, its summary, and its kit as a program."""
    job = compile_program(OPEN_MPI, "pcontrol")
    say(
        "mpirun",
        "--oversubscribe",
        "-n",
        "2",
        programs / "commprof-run",
        "--output",
        folder / "run",
        job,
    )
    summary = say(programs / "hvprof-report", "summary", folder / "run", folder=folder)
    assert "2 ranks on 1 host" in summary and "In MPI" in summary
    kit, source = folder / "job.kit", folder / "job.c"
    say(programs / "hvprof-report", "replay", "kit", folder / "run", "-o", kit)
    say(programs / "hvprof-report", "replay", "source", kit, "-o", source)
    assert "int main(" in source.read_text()
