"""The store: a folder of Parquet files, TABLE/month=2026-11/cluster=main/part-N.parquet. Files are
written aside and renamed, the job's own row last, so writers on many nodes disturb nobody; a job
that two of them have added at the same time counts once (views.sql).
It has the schema that made it. Runs that are named are added, or all in a spool that are new and
quiet.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, NamedTuple, Union

from ..base import ReportError, UsageError, by, gathered, renamed_whole, side_by_side, watched
from ..run import RankFile, file_of, folder_scan, is_of_rank, runs_split
from .job import Job, folder_job, hashed, job_read, run_key


SCHEMA = 2
_KEYS = {"run": "BIGINT", "part": "BIGINT"}  # of a job; of the file that holds its rows
TABLES = {  # the job last: what it stands for has been written then
    "folder": {**_KEYS, "folder": "BIGINT", "changed_ns": "BIGINT"},
    "setting": {**_KEYS, "name": "VARCHAR", "value": "VARCHAR"},
    "bucket": {
        **_KEYS,
        "call": "VARCHAR",
        "role": "VARCHAR",
        "high_bytes": "BIGINT",
        "measure": "VARCHAR",
        "low_ns": "BIGINT",
        "high_ns": "BIGINT",
        "calls": "BIGINT",
    },
    "host": {
        **_KEYS,
        "host": "VARCHAR",
        "place": "BIGINT",
        "ranks": "BIGINT",
        "wall_ns": "BIGINT",
        "sync_ns": "BIGINT",
        "is_last": "BIGINT",
        "behind_ns": "BIGINT",
    },
    "row": {
        **_KEYS,
        "call": "VARCHAR",
        "family": "VARCHAR",
        "role": "VARCHAR",
        "high_bytes": "BIGINT",
        "measure": "VARCHAR",
        "calls": "BIGINT",
        "volume_bytes": "BIGINT",
        "total_ns": "BIGINT",
        "max_ns": "BIGINT",
    },
    "job": {
        **_KEYS,
        "run_id": "VARCHAR",
        "start_s": "BIGINT",
        "day": "VARCHAR",
        "user_name": "VARCHAR",
        "program": "VARCHAR",
        "library": "VARCHAR",
        "hosts": "BIGINT",
        "ranks": "BIGINT",
        "ranks_read": "BIGINT",
        "ended": "VARCHAR",
        "wall_ns": "BIGINT",
        "rank_ns": "BIGINT",
        "in_mpi_ns": "BIGINT",
        "sync_ns": "BIGINT",
        "uneven_ns": "BIGINT",
    },
}
PARTITIONS = {"month": "VARCHAR", "cluster": "VARCHAR"}  # in the names of folders
NAMES = ("user", "program", "host", "library", "setting")  # what a store may leave out
AT_ONCE = 64  # folders that a process reads
IN_PART = 5_000  # jobs of a file
Found = Union[Job, RankFile, ReportError]
COLUMN_OF = {"user": "user_name", "program": "program", "library": "library"}  # of table job


class Store(NamedTuple):
    folder: Path
    keep: Sequence[str]  # NAMES that it has; the others are empty
    salt: str  # users are hashed with it; "": they have names

    def user(self, name: str) -> str:
        """As the store says it."""
        digest = hashlib.sha256(f"{self.salt}{name}".encode()).hexdigest()
        return digest[:16] if self.salt and name else name

    def mark(self, folder: Path) -> int:
        """Its path names users, so it is hashed, too."""
        return hashed(f"{self.salt}{folder.resolve()}")


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


def known(store: Store) -> tuple[set[int], dict[int, tuple[int, int]]]:
    """The runs that the store has; by the mark of a folder that has files of one of them alone: the
    run, and when the folder had changed last."""
    if not job_files(store):
        return set(), {}
    jobs = duckdb().read_parquet(files_of(store, "job")).project("run")
    runs = {run for (run,) in jobs.fetchall()}
    folders = duckdb().read_parquet(files_of(store, "folder")).project("folder, run, changed_ns")
    return runs, {mark: (run, ns) for mark, run, ns in folders.fetchall() if run in runs}


def jobs_write(store: Store, jobs: Sequence[Job], cluster: str) -> None:
    if not re.fullmatch(r"[\w.-]+", cluster):
        raise UsageError("--cluster", f"{cluster} is no name for a folder")
    connection = duckdb()
    for month, own in gathered((job.month, job) for job in jobs).items():
        part = hashed(" ".join(str(job.run) for job in sorted(own)))
        for table in TABLES:
            rows = (
                (run, part, *values)
                for job in own
                for run, *values in _allowed(store, table, job.rows[table])
            )
            folder = store.folder / table / f"month={month}" / f"cluster={cluster}"
            folder.mkdir(parents=True, exist_ok=True)
            parquet_write(connection, table, rows, folder / f"part-{part:016x}.parquet")


def _allowed(store: Store, table: str, rows: Iterable[tuple]) -> Iterator[tuple]:
    """Without what the store leaves out."""
    columns = [name for name in TABLES[table] if name != "part"]
    left_out = dict.fromkeys((COLUMN_OF[name] for name in COLUMN_OF if name not in store.keep), "")
    for row in () if table in NAMES and table not in store.keep else rows:
        values = dict(zip(columns, row))
        if table == "job":
            values |= {"user_name": store.user(values["user_name"]), **left_out}
            if "host" not in store.keep:  # whose name precedes the number under Hydra and PMIx
                values["run_id"] = re.sub(r".*[A-Za-z][^-]*-?", "", values["run_id"])
        elif table == "folder":
            values["folder"] = store.mark(values["folder"])
        yield tuple(values.values())


def parquet_write(
    connection: Any, table: str, rows: Iterable[Sequence[object]], output: Path
) -> None:
    """Through a file of text, which DuckDB reads faster than values."""
    with TemporaryDirectory() as folder, renamed_whole(output) as aside:
        text = Path(folder) / "rows.csv"
        with open(text, "w", encoding="utf-8", errors="replace", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
        found = connection.read_csv(
            str(text),
            header=False,
            columns=TABLES[table],
            delimiter=",",
            quotechar='"',
            escapechar='"',
            na_values="\0",
            auto_detect=False,
        )
        found.write_parquet(str(aside), compression="zstd")


def forget(store: Store, user: str) -> int:
    """Removes the jobs of a user: writes each file that has one again, without. How many jobs."""
    connection, name, jobs = duckdb(), store.user(user), 0
    for path in job_files(store):
        runs = [
            run
            for (run,) in connection.execute(
                "SELECT run FROM read_parquet(?) WHERE user_name = ?", [str(path), name]
            ).fetchall()
        ]
        for table in TABLES if runs else ():
            own = store.folder / table / path.relative_to(store.folder / "job")
            with renamed_whole(own) as aside:
                rest = connection.sql(
                    "SELECT * FROM read_parquet(?, hive_partitioning = false)"
                    " WHERE NOT list_contains(?, run)",
                    params=[str(own), runs],
                )
                rest.write_parquet(str(aside), compression="zstd")
        jobs += len(runs)
    return jobs


def folders_below(spool: Path) -> list[Path]:
    """All folders with files of ranks: of jobs, and of those that share a folder or were
    spawned."""
    return [Path(top) for top, _, names in os.walk(spool) if any(map(is_of_rank, names))]


def add(
    store: Store, folders: Sequence[Path], cluster: str, quiet_s: float, problems: list[ReportError]
) -> Counter[str]:
    """How many jobs are `added`, `known` and `not complete yet`. quiet_s: a run that lacks a rank's
    database is left for later until none of its files has changed for so long. Folders that have
    not changed since their run was added are not read."""
    runs, marks = known(store)
    marked = {folder: marks.get(store.mark(folder), (0, 0)) for folder in folders}
    changed = {run for folder, (run, ns) in marked.items() if ns != _changed_ns(folder)}
    old = {run for run, _ in marked.values()} - changed
    fresh = [folder for folder, (run, _) in marked.items() if run in changed]
    jobs: list[Job] = []
    files: list[RankFile] = []
    counts: Counter[str] = Counter()

    def take(found: Iterable[Found]) -> None:
        for each in found:
            if isinstance(each, RankFile):
                files.append(each)
            elif isinstance(each, ReportError):
                problems.append(each)
            elif each.run in runs:
                old.add(each.run)
            else:
                jobs.append(each)
                runs.add(each.run)
                counts["added"] += 1
        if len(jobs) >= IN_PART:
            jobs_write(store, jobs, cluster)
            jobs.clear()

    for found in _of_parts(_folders_read, fresh, "looking at"):
        take(found)
    waiting = []
    for run in _runs(files):
        if run_key(run) in runs:
            old.add(run_key(run))
        elif _is_quiet(run, quiet_s):
            waiting.append(run)
        else:
            counts["not complete yet"] += 1
    for found in _of_parts(_runs_read, waiting, "reading"):
        take(found)
    jobs_write(store, jobs, cluster)
    counts["known"] = len(old)
    return counts


def _changed_ns(folder: Path) -> int:
    """-1: it is not there, which whoever reads it says."""
    return folder.stat().st_mtime_ns if folder.exists() else -1


def _of_parts(function: Callable, items: Sequence, doing: str) -> Iterator[tuple]:
    """Its answers of each part, in other processes."""
    parts = [items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE)]
    return watched(side_by_side(function, parts), doing, len(parts), "parts")


def _folders_read(folders: Sequence[Path]) -> list[Found]:
    """Jobs that are whole in a folder, and the files of others."""
    found: list[Found] = []
    for folder in folders:
        if job := folder_job(folder):
            found.append(job)
        else:
            scan = folder_scan(folder)
            found += [*scan.files, *scan.problems]
    return found


def _runs(files: list[RankFile]) -> Iterator[list[RankFile]]:
    """A run may be in several folders (output = .../%h). Jobs that share id, size and time have a
    rank in two of them."""
    for run in runs_split(files):
        folders = by(run, lambda file: file.folder)
        ranks = [
            {rank.world_rank for file in own for rank in file.ranks} for own in folders.values()
        ]
        is_one = len(set().union(*ranks)) == sum(map(len, ranks))
        yield from [run] if is_one else folders.values()


def _runs_read(runs: Sequence[Sequence[RankFile]]) -> list[Found]:
    found: list[Found] = []
    for files in runs:
        try:
            found.append(job_read(files))
        except ReportError as error:
            found.append(error)
    return found


def _is_quiet(files: Sequence[RankFile], quiet_s: float) -> bool:
    ranks = {rank.world_rank for file in files if not file.is_ledger for rank in file.ranks}
    if len(ranks) >= files[0].run[1]:
        return True
    newest_s = max(os.stat(file_of(file.path)).st_mtime for file in files)
    return time.time() - newest_s >= quiet_s
