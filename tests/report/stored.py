"""Databases that the C library makes of ledgers, by its own store (store.c)."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src"


@lru_cache(maxsize=None)
def program() -> Path:
    """The store, compiled once a process."""
    folder = Path(tempfile.mkdtemp(prefix="commprof-store-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    parts = [path for part in ("output", "ledger", "base") for path in (SOURCES / part).glob("*.c")]
    flags = ["-std=c11", "-D_GNU_SOURCE", '-DCOMMPROF_VERSION="0"', f"-I{SOURCES}", "-O0"]
    command = [os.environ.get("CC", "cc"), *flags, HERE / "store.c", *parts]
    subprocess.run([*command, "-ldl", "-lpthread", "-o", folder / "store"], check=True)
    return folder / "store"


def database_of(ledger: Path) -> Path:
    """In a folder of its own, since a reader takes the files of one folder as one run."""
    database = ledger.parent / "stored" / ledger.with_suffix(".db").name
    database.parent.mkdir(exist_ok=True)
    database.unlink(missing_ok=True)
    subprocess.run([program(), ledger, database], check=True, timeout=60)
    return database
