"""The store: a folder of Parquet files, TABLE/month=2026-11/cluster=main/part-N.parquet. Files are
written aside and renamed, the job's own row last, so writers on many nodes disturb nobody; a job
that two of them have added at the same time counts once (views.sql)."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ..base.files import renamed_whole
from ..base import ReportError, UsageError, gathered
from .job import Job, hashed
from .tables import NAMES, SCHEMA, TABLES

COLUMN_OF = {"user": "user_name", "program": "program", "library": "library"}  # of table job


class Store(NamedTuple):
    folder: Path
    keep: Sequence[str]  # NAMES that it has; the others are empty
    salt: str  # users are hashed with it; "": they have names

    def user(self, name: str) -> str:
        """As the store says it."""
        digest = hashlib.sha256(f"{self.salt}{name}".encode()).hexdigest()
        return digest[:16] if self.salt and name else name


def duckdb() -> Any:
    """A connection of its own."""
    try:
        import duckdb as module
    except ImportError as error:
        raise ReportError("fleet", "needs the Python package duckdb: pip install duckdb") from error
    return module.connect(config={"threads": len(os.sched_getaffinity(0))})


def store_open(folder: Path) -> Store:
    try:
        said = json.loads((folder / "store.json").read_text())
        schema, store = said["schema"], Store(folder, said["keep"], said["salt"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReportError(folder, "is no store of jobs: `fleet add` makes one") from error
    if schema != SCHEMA:
        raise ReportError(folder, f"has version {schema} of the schema; this reads {SCHEMA}")
    return store


def store_create(folder: Path, keep: Sequence[str] | None, is_hashed: bool) -> Store:
    """The store; a new one as it is asked for, and one that is there as it is. What is asked of a
    store that is there is refused if it is otherwise."""
    if not (folder / "store.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ReportError(folder, "is neither empty nor a store of jobs")
        salt = secrets.token_hex(16) if is_hashed else ""
        said = {"schema": SCHEMA, "keep": list(NAMES if keep is None else keep), "salt": salt}
        with renamed_whole(folder / "store.json", 0o600 if salt else 0o666) as aside:
            aside.write_text(json.dumps(said) + "\n")
    store = store_open(folder)
    if (keep is not None and {*keep} != {*store.keep}) or (is_hashed and not store.salt):
        raise UsageError("fleet", "--keep and --hash-users are of a new store; this one is there")
    return store


def files_of(store: Store, table: str) -> str:
    """A pattern of their paths."""
    return f"{store.folder.resolve()}/{table}/*/*/part-*.parquet"


def job_files(store: Store) -> list[Path]:
    return sorted(store.folder.glob("job/*/*/part-*.parquet"))


def known(store: Store) -> set[int]:
    """The runs that the store has."""
    files = [str(path) for path in job_files(store)]
    found = duckdb().read_parquet(files).project("run").fetchall() if files else ()
    return {run for (run,) in found}


def jobs_write(store: Store, jobs: Sequence[Job], cluster: str) -> None:
    if not re.fullmatch(r"[\w.-]+", cluster):
        raise UsageError("--cluster", f"{cluster} is no name for a folder")
    for month, own in gathered((job.month, job) for job in jobs).items():
        part = hashed(" ".join(str(job.run) for job in sorted(own)))
        for table in TABLES:
            rows = (
                (run, part, *values) for job in own
                for run, *values in _allowed(store, table, job.rows[table])
            )
            folder = store.folder / table / f"month={month}" / f"cluster={cluster}"
            folder.mkdir(parents=True, exist_ok=True)
            parquet_write(table, rows, folder / f"part-{part:016x}.parquet")


def _allowed(store: Store, table: str, rows: Iterable[tuple]) -> Iterator[tuple]:
    """Without what the store leaves out."""
    if table in NAMES and table not in store.keep:
        return
    columns = [name for name in TABLES[table] if name != "part"]
    left_out = {COLUMN_OF[name] for name in COLUMN_OF if name not in store.keep}
    for row in rows:
        values = dict(zip(columns, row))
        if table == "job":
            values["user_name"] = store.user(values["user_name"])
            values.update(dict.fromkeys(left_out, ""))
        yield tuple(values.values())


def parquet_write(table: str, rows: Iterable[Sequence[object]], output: Path) -> None:
    """Through a file of text, which DuckDB reads faster than values."""
    with TemporaryDirectory() as folder, renamed_whole(output) as aside:
        text = Path(folder) / "rows.csv"
        with open(text, "w", encoding="utf-8", errors="replace", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
        found = duckdb().read_csv(
            str(text), header=False, columns=TABLES[table], delimiter=",", quotechar='"',
            escapechar='"', na_values="\0", auto_detect=False,
        )
        found.write_parquet(str(aside), compression="zstd")


def forget(store: Store, user: str) -> int:
    """Removes the jobs of a user: writes each file that has one again, without. How many jobs."""
    connection, name, jobs = duckdb(), store.user(user), 0
    for path in job_files(store):
        whole = connection.read_parquet(str(path), hive_partitioning=False)
        runs = whole.filter(_equals("user_name", name)).project("run").fetchall()
        for table in TABLES if runs else ():
            own = store.folder / table / path.relative_to(store.folder / "job")
            if own.exists():
                _without(connection, own, [run for (run,) in runs])
        jobs += len(runs)
    return jobs


def _equals(column: str, value: str) -> Any:
    import duckdb as module

    return module.ColumnExpression(column) == module.ConstantExpression(value)


def _without(connection: Any, path: Path, runs: Sequence[int]) -> None:
    import duckdb as module

    theirs = module.ColumnExpression("run").isnotin(*map(module.ConstantExpression, runs))
    with renamed_whole(path) as aside:
        rows = connection.read_parquet(str(path), hive_partitioning=False).filter(theirs)
        rows.write_parquet(str(aside), compression="zstd")
