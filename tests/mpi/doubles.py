"""Programs of tests/doubles, which use GPUs that do not exist: built, run under the profiler, and
the truth that they tell."""

from __future__ import annotations

import json
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from . import reporter
from .harness import C_ERRORS, C_FLAGS, CLOCK_ERROR, REPOSITORY, Outcome, Run, compile_to
from .libraries import Mpi

SOURCES = REPOSITORY / "tests/doubles"
FOLDER = REPOSITORY / "build/doubles"

# The doubles are where the dynamic linker looks; the profiler looks for GPUs though there is no
# driver, traces at all times, and collects often.
SETTINGS = {
    "LD_LIBRARY_PATH": str(FOLDER),
    "COMMPROF_GPU": "on",
    "COMMPROF_GPU_EVERY_S": "0",
    "COMMPROF_GPU_COLLECT_MS": "20",
}


def make_doubles(sources: Path) -> None:
    """By one worker at a time."""
    FOLDER.parent.mkdir(exist_ok=True)
    subprocess.run(
        ["flock", f"{FOLDER}.lock", "make", "-s", "-C", str(sources), f"BUILD={FOLDER}"], check=True
    )


@lru_cache
def build() -> Path:
    make_doubles(SOURCES)
    return FOLDER


def program(mpi: Mpi, name: str, *libraries: str) -> str:
    """Compiled with an MPI's compiler and linked with these doubles."""
    return compiled(
        mpi.name, mpi.mpicc, name, tuple(str(build() / library) for library in libraries)
    )


@lru_cache
def compiled(mpi_name: str, mpicc: str, name: str, libraries: tuple[str, ...]) -> str:
    binary = REPOSITORY / "build/tests" / mpi_name / name
    source = SOURCES / f"{name}.c"
    linked = [*libraries, f"-Wl,-rpath,{FOLDER}", "-ldl"]
    command = [mpicc, *C_FLAGS, *C_ERRORS, f"-I{SOURCES}", str(source), *linked]
    compile_to(binary, command, Path(__file__), source, SOURCES / "gpu_double.h")
    return str(binary)


class Sum(NamedTuple):
    count: int
    volume_bytes: int
    total_ns: int
    min_ns: int
    max_ns: int


def agree(seen: dict[str, Sum], planted: dict[str, Sum]) -> bool:
    """Counts and bytes exactly; durations to a nanosecond each, and to the clock's error."""

    def is_near(name: str) -> bool:
        (count, volume_bytes, *durations_ns), rounding_ns = (
            planted[name],
            (planted[name].count, 1, 1),
        )
        return seen[name][:2] == (count, volume_bytes) and all(
            abs(mine - theirs) <= rounding + theirs * CLOCK_ERROR
            for mine, theirs, rounding in zip(seen[name][2:], durations_ns, rounding_ns)
        )

    return seen.keys() == planted.keys() and all(map(is_near, planted))


class Truth(NamedTuple):
    """Activity of a rank of the training program while it was traced."""

    kernels: dict[str, Sum]
    copies: dict[str, Sum]
    sets: dict[str, Sum]
    reductions: int
    kineto_kernels: int
    busy_ns: list[int]  # by state (enum ledger_busy): as if nobody ever was in MPI
    rank: int

    @property
    def records(self) -> int:
        return sum(
            what.count for kind in (self.kernels, self.copies, self.sets) for what in kind.values()
        )


def truths(outcome: Outcome) -> list[Truth]:
    """Truths of all ranks whose line has arrived, in their order."""
    told = [
        json.loads(line.removeprefix("truth "))
        for line in outcome.stdout.splitlines()
        if line.startswith("truth ")
    ]
    sums = lambda named: {name: Sum(*numbers) for name, numbers in named.items()}  # noqa: E731

    def truth(of: dict[str, Any]) -> Truth:
        activities = (sums(of[kind]) for kind in ("kernels", "copies", "sets"))
        return Truth(*activities, of["reductions"], of["kineto_kernels"], of["busy_ns"], of["rank"])

    return [truth(of) for of in sorted(told, key=lambda of: of["rank"])]


KERNELS = """
    SELECT name, SUM(count), SUM(volume_bytes), SUM(total_ns), MIN(min_ns), MAX(max_ns)
    FROM gpu_activity JOIN gpu_kernel USING (world_rank, kernel) WHERE kind = 'kernel'
        GROUP BY name"""
COPIES = """
    SELECT REPLACE(copy, ' ', '_'), SUM(count), SUM(volume_bytes), SUM(total_ns), MIN(min_ns),
           MAX(max_ns)
    FROM gpu_activity WHERE kind = 'copy' GROUP BY copy"""
SETS = """
    SELECT 'set', SUM(count), SUM(volume_bytes), SUM(total_ns), MIN(min_ns), MAX(max_ns)
    FROM gpu_activity WHERE kind = 'memset' GROUP BY kind"""
BUSY = """
    SELECT is_computing + 2 * is_communicating + 4 * is_copying, SUM(ns) FROM gpu_busy GROUP BY 1"""


class Seen(NamedTuple):
    """The same, as a rank's profile has it."""

    kernels: dict[str, Sum]
    copies: dict[str, Sum]
    sets: dict[str, Sum]


def is_true(seen: Seen, truth: Truth) -> bool:
    return (
        agree(seen.kernels, truth.kernels)
        and agree(seen.copies, truth.copies)
        and agree(seen.sets, truth.sets)
    )


def seen(run: Run, rank: int) -> Seen:
    return Seen(
        *(
            {row[0]: Sum(*row[1:]) for row in run.query(rank, sql)}
            for sql in (KERNELS, COPIES, SETS)
        )
    )


def busy_ns(run: Run, rank: int) -> dict[int, int]:
    return dict(run.query(rank, BUSY))


def counts(of: Seen | Truth) -> dict[str, int]:
    return {
        name: what.count for kind in (of.kernels, of.copies, of.sets) for name, what in kind.items()
    }


def database_of(run: Run, folder: Path) -> Run:
    """The same run with a database for ranks that were killed too, made from their ledgers."""
    for rank in range(run.ranks):
        if run.ledger(rank).exists():
            target = folder / f"rank-{rank}.db"
            reporter.text("merge", run.ledger(rank), target)
    return Run(run.ranks, folder, run.outcome)


def real_libraries() -> list[Path]:
    """NVIDIA's own libcupti, of each release that is here."""
    places = [
        *REPOSITORY.glob("build/cupti/*/nvidia/*/lib/libcupti.so.*"),
        *Path("/usr/local").glob("cuda-*/lib64/libcupti.so.1?"),
    ]
    return sorted(path.absolute() for path in places)
