"""Train with and without the profiler, compare the parameters in the end, and ask the profile what ran.

training.sh sets up what this needs. All sums are made in one order (two ranks, one thread each, data from fixed seeds), so the
ranks must end with equal parameters, and a run with the profiler with the same as one without."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from common import AS_ROOT, BUILD, REPOSITORY, SUITES, require_build, rows, unprofiled_environment

PROGRAMS = REPOSITORY / "examples/frameworks"
TRIXIE = Path(os.environ.get("TRIXIE", "/var/tmp/chroots/trixie"))
RANKS, STEPS, TIMEOUT_S = 2, 200, 900
PARAMETER_BYTES = 4 * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)  # small_network.py

OPEN_MPI = ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1")


class Claim(NamedTuple):
    """What must hold on every rank: the query's answer is 1."""

    sentence: str
    sql: str


CALLS = """
    WITH calls AS (
        SELECT call, bytes, count, volume_bytes, is_main, constructor, identity, measure
        FROM cell JOIN thread USING (world_rank, thread) LEFT JOIN communicator USING (world_rank, communicator)
        WHERE communicator > 0 AND measure = 'call' AND call NOT LIKE 'MPI_Comm%')
"""
PARAMETERS = {"steps": STEPS, "gradients": STEPS * PARAMETER_BYTES, "tensor": 512 * 512 * 4}

ON_ANOTHER_THREAD = Claim("no collective is on the main thread", CALLS + "SELECT SUM(is_main) = 0 FROM calls")

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
        CALLS + "SELECT SUM(volume_bytes) = :gradients FROM calls WHERE call = 'MPI_Allreduce' AND bytes > 32",
    ),
    Claim(
        "there are more Allreduces of control than steps, and they carry less than a thousandth",
        CALLS + "SELECT SUM(count) > :steps AND SUM(volume_bytes) < :gradients / 1000 FROM calls WHERE call = 'MPI_Allreduce' AND bytes <= 32",
    ),
)
LARGEST = CALLS + "SELECT MAX(bytes) {} :tensor FROM calls WHERE call = 'MPI_Allreduce'"
FUSED = Claim("an Allreduce is larger than any tensor", LARGEST.format(">"))
NOT_FUSED = Claim("the largest Allreduce is the largest tensor", LARGEST.format("="))


class Workload(NamedTuple):
    name: str
    mpirun: tuple[str, ...]
    python: str
    program: str
    environment: dict[str, str]
    claims: tuple[Claim, ...]
    root: Path  # where the job sees its files; / unless it runs in another system
    missing: Path  # what must be there


def workloads() -> Iterator[Workload]:
    for mpi, mpirun in (("openmpi", (*OPEN_MPI, "--mca", "btl", "self,vader")), ("mpich", ("mpirun.mpich",))):
        home = SUITES / f"horovod-{mpi}"
        for fusion, bytes_at_most, claim in (("fused", 64 << 20, FUSED), ("not fused", 0, NOT_FUSED)):
            environment = {"HOROVOD_FUSION_THRESHOLD": str(bytes_at_most), "HOROVOD_CYCLE_TIME": "5"}
            program, claims = "horovod_train.py", (*HOROVOD, claim)
            name = f"Horovod, {mpi}, {fusion}"
            yield Workload(name, mpirun, str(home / "bin/python"), program, environment, claims, Path("/"), home / "ready")
    mpirun = (*OPEN_MPI, "--mca", "btl", "self,sm")
    yield Workload("DistributedDataParallel, Open MPI 5", mpirun, "python3", "ddp_train.py", {}, DDP, TRIXIE, TRIXIE / "ready")


class Run(NamedTuple):
    exit_status: int | None
    results: dict[int, tuple[str, str]]  # rank -> last loss and digest of the parameters
    folder: Path


RESULT = re.compile(r"result (\d+) (\S+) ([0-9a-f]{64})")


def launch(workload: Workload, *, is_profiled: bool) -> Run:
    """The job runs in a folder that holds all it needs, so that it can be inside another system."""
    name = re.sub(r"\W+", "-", workload.name)
    folder = workload.root / "tmp/commprof-suites" / name if workload.root != Path("/") else SUITES / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("bin", "lib"):
        shutil.copytree(BUILD / part, folder / part)
    for file in (workload.program, "small_network.py"):
        shutil.copy(PROGRAMS / file, folder)
    inside = Path("/") / folder.relative_to(workload.root)
    command = [
        *(["chroot", str(workload.root)] if workload.root != Path("/") else []),
        *(*workload.mpirun, "-n", str(RANKS)),
        *([str(inside / "bin/commprof-run")] if is_profiled else []),
        *(workload.python, str(inside / workload.program), str(STEPS)),
    ]
    environment = unprofiled_environment() | AS_ROOT | workload.environment | {"COMMPROF_OUTPUT": str(inside / "profile")}
    job = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S)
    (folder / "output").write_text(job.stdout + job.stderr)
    results = {int(rank): (loss, digest) for rank, loss, digest in RESULT.findall(job.stdout)}
    return Run(job.returncode, results, folder)


def faults(workload: Workload, plain: Run, profiled: Run) -> Iterator[str]:
    for word, run in (("without", plain), ("with", profiled)):
        if run.exit_status or sorted(run.results) != list(range(RANKS)):
            yield f"exit status {run.exit_status} {word} the profiler, results of ranks {sorted(run.results)}; {run.folder}/output"
        elif len({digest for _, digest in run.results.values()}) != 1:
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
    SELECT SUM(count) || ' calls, ' || SUM(volume_bytes) || ' bytes; largest Allreduce ' || MAX(bytes * (call = 'MPI_Allreduce'))
    FROM calls"""
)


def answer(database: Path, sql: str) -> object:
    return rows(database, sql, **PARAMETERS)[0][0]


def main() -> int:
    parser = argparse.ArgumentParser(prog="training.sh", description="real training, with the profiler and without")
    parser.add_argument("--workload", metavar="REGEX", default="", help="only those whose name matches")
    arguments = parser.parse_args()
    require_build(parser.prog)

    failed = False
    for workload in workloads():
        if not re.search(arguments.workload, workload.name):
            continue
        if not workload.missing.exists():
            print(f"SKIPPED: {workload.name}: no {workload.missing}")
            continue
        plain, profiled = launch(workload, is_profiled=False), launch(workload, is_profiled=True)
        found = list(faults(workload, plain, profiled))
        failed = failed or bool(found)
        print(f"{'FAILED' if found else 'passed'}: {workload.name}", *found, sep="\n    ", flush=True)
        if not found:
            print(f"    rank 0: {answer(profiled.folder / 'profile/rank-0.db', SUMS)}")
    return failed


sys.exit(main())
