"""The costs of a store of many jobs: adding runs, and each question.

python3 bench/fleet.py [JOBS...]    (with duckdb: PYTHONPATH=$(setup/engines.sh duckdb))"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "report"), str(ROOT / "tests" / "report")]

import fleets  # noqa: E402
import planted  # noqa: E402
from commprof_report.fleet.questions import QUESTIONS, answers, engine_open  # noqa: E402
from commprof_report.fleet.job import Job  # noqa: E402
from commprof_report.fleet.store import (  # noqa: E402
    Store,
    add,
    duckdb,
    folders_below,
    jobs_write,
    store_create,
    store_open,
)

RECORDED = ROOT / "tests/report/recordings/schema-9.tar.xz"
COPIES, BATCH, DAYS, MOST_MADE = 900, 5_000, 360, 100_000


def cpu_s() -> float:
    return sum(
        use.ru_utime + use.ru_stime
        for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def add_cost(folder: Path, runs: list[Path]) -> None:
    fleets.spool_write(folder / "spool", runs, COPIES, (0, 1))
    ranks = sum(1 for _ in (folder / "spool").rglob("rank-*.db"))
    store = store_create(folder / "small", None, False)
    for _ in range(2):
        began, spent = time.monotonic(), cpu_s()
        added = add(store, folders_below(folder / "spool"), "main", 0, [])
        spent = cpu_s() - spent
        print(
            f"add: {added['added']} jobs of {ranks / COPIES:.1f} ranks, {added['known']} known, in "
            f"{time.monotonic() - began:.1f} s; {COPIES / spent:.0f} a second of CPU time"
        )


def made(folder: Path, templates: list[Job], jobs: int) -> Store:
    """A year of 500 nodes and 200 users; beyond MOST_MADE jobs as copies."""
    whole = store_create(folder / f"whole-{jobs}", None, False)
    fleet = fleets.Fleet(min(jobs, MOST_MADE), days=DAYS, nodes=500, users=200, programs=60)
    found = fleets.jobs_of(fleet, templates)
    while batch := list(islice(found, BATCH)):
        jobs_write(whole, batch, "main")
    copies_add(whole, jobs // MOST_MADE)
    return whole


def copies_add(store: Store, times: int) -> None:
    """Each job so many times, with numbers of its own."""
    connection = duckdb()
    for month in [*store.folder.glob("*/*/*")] if times > 1 else ():
        rows = connection.sql(
            f"SELECT files.* REPLACE (run + copy AS run) FROM read_parquet('{month}/*.parquet', "
            f"hive_partitioning = false) AS files, range(1, {times}) AS copies(copy)"
        )
        rows.write_parquet(str(month / "part-copies.parquet"), compression="zstd")


def question_cost(store: Store, question: str) -> None:
    """In a process of its own."""
    began = time.monotonic(), cpu_s()
    engine = engine_open(store, "duckdb")
    rows = answers(engine, question, {"call": "MPI_Allreduce", "job": "100003"})
    peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    print(
        f"  {question}: {len(rows)} rows, {time.monotonic() - began[0]:.1f} s, "
        f"{cpu_s() - began[1]:.1f} s of CPU time, {int(peak[1]) // 1024} MiB",
        flush=True,
    )


def main(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(RECORDED) as archive:
            archive.extractall(folder / "recorded")
        runs = [
            planted.write_databases(folder / "recorded" / "planted", planted.training_run()),
            folder / "recorded" / "mpi",
            folder / "recorded" / "gpu",
        ]
        add_cost(folder, runs)
        for jobs in sizes:
            store = made(folder, [fleets.template_of(run) for run in runs], jobs)
            size = sum(path.stat().st_size for path in store.folder.rglob("*.parquet"))
            cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
            print(f"{jobs} jobs, {size / jobs:.0f} bytes each, {cores} cores, load {load:.1f}")
            for question in QUESTIONS:
                words = [sys.executable, __file__, "--ask", str(store.folder), question]
                subprocess.run(words, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        question_cost(store_open(Path(sys.argv[2])), sys.argv[3])
    else:
        main([*map(int, sys.argv[1:])] or [10_000, 100_000])
