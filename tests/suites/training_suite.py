"""Train with and without the profiler, compare the parameters in the end, and ask the profile what
ran; then train with planted faults, and ask the reports who is late (training_plants.py).

training.sh sets up what this needs. All sums are made in one order (two ranks, one thread each,
data from fixed seeds), so the ranks must end with equal parameters, and a run with the profiler
with the same as one without."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from common import AS_ROOT, BUILD, REPOSITORY, SUITES, require_build, rows, unprofiled_environment
from training_plants import PLANTS, Plant, complaints, count_logs, holds, named, truth_of

PROGRAMS = REPOSITORY / "examples/frameworks"
MARKS = REPOSITORY / "examples/steps_and_regions/commprof_marks.py"
PLANT_FILES = (Path(__file__).with_name("train.py"), MARKS)
TRIXIE = Path(os.environ.get("TRIXIE", "/var/tmp/chroots/trixie"))
RANKS, STEPS, TIMEOUT_S = 2, 200, 900
PARAMETER_BYTES = 4 * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)  # small_network.py

OPEN_MPI = ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1")


class Claim(NamedTuple):
    """A claim that must hold on every rank: the query's answer is 1."""

    sentence: str
    sql: str


CALLS = """
    WITH calls AS (
        SELECT call, bytes, count, volume_bytes, is_main, constructor, identity, measure
        FROM cell JOIN thread USING (world_rank, thread) LEFT JOIN communicator
            USING (world_rank, communicator)
        WHERE communicator > 0 AND measure = 'call' AND call NOT LIKE 'MPI_Comm%')
"""
PARAMETERS = {"steps": STEPS, "gradients": STEPS * PARAMETER_BYTES, "tensor": 512 * 512 * 4}

ON_ANOTHER_THREAD = Claim(
    "no collective is on the main thread", CALLS + "SELECT SUM(is_main) = 0 FROM calls"
)

DDP = (
    ON_ANOTHER_THREAD,
    Claim("all are on MPI_COMM_WORLD", CALLS + "SELECT MIN(constructor = '') FROM calls"),
    Claim(
        "Allreduce carries each gradient once",
        CALLS + "SELECT SUM(volume_bytes) = :gradients FROM calls WHERE call = 'MPI_Allreduce'",
    ),
)

HOROVOD = (
    ON_ANOTHER_THREAD,
    Claim("none is on MPI_COMM_WORLD", CALLS + "SELECT MIN(constructor <> '') FROM calls"),
    Claim(
        "the Allreduces above those of control carry each gradient once",
        CALLS + "SELECT SUM(volume_bytes) = :gradients FROM calls WHERE call = 'MPI_Allreduce' AND "
        "bytes > 32",
    ),
    Claim(
        "there are more Allreduces of control than steps, and they carry less than a thousandth",
        CALLS
        + "SELECT SUM(count) > :steps AND SUM(volume_bytes) < :gradients / 1000 FROM calls WHERE "
        "call = 'MPI_Allreduce' AND bytes <= 32",
    ),
)
LARGEST = CALLS + "SELECT MAX(bytes) {} :tensor FROM calls WHERE call = 'MPI_Allreduce'"
FUSED = Claim("an Allreduce is larger than any tensor", LARGEST.format(">"))
NOT_FUSED = Claim("the largest Allreduce is the largest tensor", LARGEST.format("="))


class Place(NamedTuple):
    """Environment of the programs: an MPI library, and a Python with a framework for it."""

    mpirun: tuple[str, ...]
    python: str
    root: Path  # where the job sees its files; / unless it runs in another system
    missing: Path  # what must be there


def horovod_place(mpi: str, *mpirun: str) -> Place:
    home = SUITES / f"horovod-{mpi}"
    return Place(mpirun, str(home / "bin/python"), Path("/"), home / "ready")


PLACES = {
    "openmpi": horovod_place("openmpi", *OPEN_MPI, "--mca", "btl", "self,vader"),
    "mpich": horovod_place("mpich", "mpirun.mpich"),
    "ddp": Place((*OPEN_MPI, "--mca", "btl", "self,sm"), "python3", TRIXIE, TRIXIE / "ready"),
}


class Workload(NamedTuple):
    name: str
    place: str
    program: str
    environment: dict[str, str]
    claims: tuple[Claim, ...]


def workloads() -> Iterator[Workload]:
    for mpi in ("openmpi", "mpich"):
        for fusion, bytes_at_most, claim in (
            ("fused", 64 << 20, FUSED),
            ("not fused", 0, NOT_FUSED),
        ):
            environment = {
                "HOROVOD_FUSION_THRESHOLD": str(bytes_at_most),
                "HOROVOD_CYCLE_TIME": "5",
            }
            name, claims = f"Horovod, {mpi}, {fusion}", (*HOROVOD, claim)
            yield Workload(name, mpi, "horovod_train.py", environment, claims)
    yield Workload("DistributedDataParallel, Open MPI 5", "ddp", "ddp_train.py", {}, DDP)


class Job(NamedTuple):
    exit_status: int
    stdout: str
    folder: Path


def launch(
    place: Place,
    name: str,
    files: Sequence[Path],
    words: Sequence[str],
    ranks: int,
    environment: dict[str, str],
    *,
    is_profiled: bool,
) -> Job:
    """The job runs in a folder that holds all it needs, so that it can be inside another system.
    The first file is the program."""
    name = re.sub(r"\W+", "-", name)
    is_here = place.root == Path("/")
    folder = SUITES / "runs" / name if is_here else place.root / "tmp/commprof-suites" / name
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("bin", "lib"):
        shutil.copytree(BUILD / part, folder / part)
    for file in files:
        shutil.copy(file, folder)
    inside = Path("/") / folder.relative_to(place.root)
    command = [
        *([] if is_here else ["chroot", str(place.root)]),
        *("env", "--chdir", str(inside)),
        *(*place.mpirun, "-n", str(ranks)),
        *([str(inside / "bin/commprof-run")] if is_profiled else []),
        *(place.python, str(inside / files[0].name), *words),
    ]
    environment = unprofiled_environment() | AS_ROOT | environment
    environment["COMMPROF_OUTPUT"] = str(inside / "profile")
    job = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        timeout=TIMEOUT_S,
    )
    (folder / "output").write_text(job.stdout + job.stderr)
    return Job(job.returncode, job.stdout, folder)


class Run(NamedTuple):
    exit_status: int
    results: dict[int, tuple[str, str]]  # rank -> last loss and digest of the parameters
    folder: Path


RESULT = re.compile(r"result (\d+) (\S+) ([0-9a-f]{64})")


def run(workload: Workload, *, is_profiled: bool) -> Run:
    files = [PROGRAMS / workload.program, PROGRAMS / "small_network.py"]
    place = PLACES[workload.place]
    words, environment = [str(STEPS)], workload.environment
    job = launch(place, workload.name, files, words, RANKS, environment, is_profiled=is_profiled)
    results = {int(rank): (loss, digest) for rank, loss, digest in RESULT.findall(job.stdout)}
    return Run(job.exit_status, results, job.folder)


def faults(workload: Workload, plain: Run, profiled: Run) -> Iterator[str]:
    for word, each in (("without", plain), ("with", profiled)):
        if each.exit_status or sorted(each.results) != list(range(RANKS)):
            ended = f"exit status {each.exit_status} {word} the profiler"
            yield f"{ended}, results of ranks {sorted(each.results)}; {each.folder}/output"
        elif len({digest for _, digest in each.results.values()}) != 1:
            yield f"the ranks' parameters differ {word} the profiler"
    if plain.results != profiled.results:
        yield f"results differ: {plain.results} without the profiler, {profiled.results} with it"
    for rank in range(RANKS):
        database = profiled.folder / "profile" / f"rank-{rank}.db"
        if not database.exists():
            yield f"no {database}"
            continue
        for claim in workload.claims:
            if answer(database, claim.sql) != 1:
                yield f"rank {rank}: does not hold: {claim.sentence}"


SUMS = (
    CALLS
    + """
    SELECT SUM(count) || ' calls, ' || SUM(volume_bytes) || ' bytes; largest Allreduce '
           || MAX(bytes * (call = 'MPI_Allreduce'))
    FROM calls"""
)


def answer(database: Path, sql: str) -> object:
    return rows(database, sql, **PARAMETERS)[0][0]


def play(plant: Plant) -> tuple[list[str], str]:
    """Faults, and a note. A run in which other work hides the plant counts for nothing."""
    place, words = PLACES[plant.place], plant.options.split()
    job = launch(
        place, plant.name, PLANT_FILES, words, plant.ranks, plant.environment, is_profiled=True
    )
    if job.exit_status or count_logs(job.folder) != plant.ranks:
        return [f"exit status {job.exit_status}; {job.folder}/output"], ""
    truth = truth_of(job.folder)
    if not holds(truth):
        return [], "disturbed: the logs do not show the plant"
    by_command = named(job.folder / "profile")
    accused = {rank for ranks in by_command.values() for rank in ranks}
    whom = ", ".join(f"rank {rank}" for rank in sorted(accused)) or "nobody"
    return list(complaints(job.folder)), f"{truth.steps} steps; {whom} is named"


def compare(workload: Workload) -> tuple[list[str], str]:
    plain, profiled = run(workload, is_profiled=False), run(workload, is_profiled=True)
    found = list(faults(workload, plain, profiled))
    return found, "" if found else f"rank 0: {answer(profiled.folder / 'profile/rank-0.db', SUMS)}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="training.sh", description=__doc__)
    parser.add_argument("--workload", metavar="REGEX", default="", help="only matching names")
    times = "how often each plant is played (1: 20 runs in all)"
    parser.add_argument("--times", metavar="N", type=int, default=1, help=times)
    arguments = parser.parse_args()
    require_build(parser.prog)

    compared = [(workload, compare) for workload in workloads()]
    played = [(plant, play) for _ in range(arguments.times) for plant in PLANTS]
    outcomes: Counter[str] = Counter()
    for trial, judge in (*compared, *played):
        missing = PLACES[trial.place].missing
        if not re.search(arguments.workload, trial.name):
            continue
        if not missing.exists():
            print(f"SKIPPED: {trial.name}: no {missing}")
            continue
        found, note = judge(trial)
        outcome = "FAILED" if found else "passed"
        outcomes[outcome] += 1
        notes = [note] if note else []
        print(f"{outcome}: {trial.name}", *found, *notes, sep="\n    ", flush=True)
    print(f"{outcomes['passed']} passed, {outcomes['FAILED']} failed")
    return outcomes["FAILED"] > 0


sys.exit(main())
