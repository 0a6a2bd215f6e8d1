"""What the suites share: where things are, what a job is started with, and what its databases say."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SUITES = REPOSITORY / os.environ.get("SUITES", "build/suites")
BUILD = REPOSITORY / os.environ.get("BUILD", "build")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def require_build(script: str) -> None:
    if not (BUILD / "bin/commprof-run").exists():
        sys.exit(f"{script}: no {BUILD}/bin/commprof-run; run `make` first")


def unprofiled_environment() -> dict[str, str]:
    """That of the suite, without what concerns a profiler."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COMMPROF_", "LD_PRELOAD"))}


def rows(database: Path, sql: str, **parameters: object) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(sql, parameters).fetchall()
