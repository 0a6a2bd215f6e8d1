"""Common parts of the suites: where things are, what a job is started with, and what its databases
say."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SUITES = REPOSITORY / os.environ.get("SUITES", "build/suites")
BUILD = REPOSITORY / os.environ.get("BUILD", "build")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


# Meaning of a test that ended differently.
BROKEN = "broken"  # with the profiler it ends so again, or it crashed or hung
ONCE = "once"  # it does not end so again, neither with the profiler nor without
FLAKY = "flaky"  # it ends so without the profiler too, now and then


def require_build(script: str) -> None:
    if not (BUILD / "bin/commprof-run").exists():
        sys.exit(f"{script}: no {BUILD}/bin/commprof-run; run `make` first")


def unprofiled_environment() -> dict[str, str]:
    """Environment of the suite, without what concerns a profiler."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMMPROF_", "LD_PRELOAD"))
    }


def rows(database: Path, sql: str, **parameters: object) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(sql, parameters).fetchall()


def ended_by(job: subprocess.Popen, timeout_s: float) -> int | None:
    """Its exit status; None for a job that hangs, which is ended: mpirun first, so that it can end
    its ranks."""
    try:
        return job.wait(timeout_s)
    except subprocess.TimeoutExpired:
        job.terminate()
    try:
        job.wait(20)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(job.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    job.wait()
    return None


def verdict(without: set[str], first: str, again: set[str]) -> str:
    if not again <= without or ("unfinished" in first and first not in without):
        return BROKEN
    return FLAKY if first in without | {"absent"} else ONCE


def our_lines(output: Path) -> list[str]:
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if "commprof" in line and "commprof: profile of" not in line]
