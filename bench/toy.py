"""Programs of this folder that are linked with toy_mpi.c, an MPI library that does nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

LIBRARY = "libtoy_mpi.so"


def build(folder: Path, program: str) -> Path:
    source = Path(__file__).resolve().parent
    subprocess.run(
        [
            "cc",
            "-w",
            "-O2",
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{LIBRARY}",
            source / "toy_mpi.c",
            "-o",
            folder / LIBRARY,
        ],
        check=True,
    )
    linked = [f"-L{folder}", "-ltoy_mpi", f"-Wl,-rpath,{folder}", "-ldl", "-lpthread"]
    subprocess.run(
        ["cc", "-w", "-O2", source / f"{program}.c", "-o", folder / program, *linked], check=True
    )
    return folder / program
