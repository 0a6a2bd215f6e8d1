"""The costs of a store of many jobs: adding runs, and each question.

python3 bench/fleet.py [JOBS]    (with duckdb: PYTHONPATH=$(setup/engines.sh duckdb))"""

from __future__ import annotations

import os
import resource
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
from commprof_report.fleet.store import (  # noqa: E402
    add,
    folders_below,
    jobs_write,
    store_create,
)

RECORDED = ROOT / "tests/report/recordings/schema-9.tar.xz"
COPIES, BATCH, DAYS = 300, 5_000, 360


def cpu_s() -> float:
    return sum(
        use.ru_utime + use.ru_stime
        for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main(jobs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(RECORDED) as archive:
            archive.extractall(folder / "recorded")
        runs = [
            planted.write_databases(folder / "recorded" / "planted", planted.training_run()),
            folder / "recorded" / "mpi",
            folder / "recorded" / "gpu",
        ]
        fleets.spool_write(folder / "spool", runs, COPIES, (0, 1))
        began, spent = time.monotonic(), cpu_s()
        store = store_create(folder / "small", None, False)
        added = add(store, folders_below(folder / "spool"), "main", 0, [])
        spent = cpu_s() - spent
        print(
            f"add: {added['added']} jobs in {time.monotonic() - began:.1f} s; "
            f"{added['added'] / spent:.0f} jobs a second of CPU time"
        )
        whole = store_create(folder / "whole", None, False)
        made = fleets.jobs_of(
            fleets.Fleet(jobs=jobs, days=DAYS, nodes=500, users=200, programs=60),
            [fleets.template_of(run) for run in runs],
        )
        while batch := list(islice(made, BATCH)):
            jobs_write(whole, batch, "main")
        size = sum(path.stat().st_size for path in whole.folder.rglob("*.parquet"))
        print(f"store: {jobs} jobs, {size / jobs:.0f} bytes a job")
        engine = engine_open(whole, "duckdb")
        for question in QUESTIONS:
            began = time.monotonic(), time.process_time()
            rows = answers(engine, question, {"call": "MPI_Allreduce", "job": "100003"})
            print(
                f"{question}: {len(rows)} rows, {time.monotonic() - began[0]:.1f} s, "
                f"{time.process_time() - began[1]:.1f} s of CPU time"
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"peak: {peak:.0f} MiB on {len(os.sched_getaffinity(0))} cores, "
            f"load {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
