"""A job as rows of the store: the counters of its ranks, added up. Single calls are not read."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import sqlite3
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache
from operator import attrgetter
from pathlib import Path

from ..base import ReportError, Row, by, present, query, units
from ..run import (
    RankFile,
    database_create,
    database_open,
    file_of,
    is_of_rank,
    ledger_read,
    rank_paths,
    ranks_in,
    rows_insert,
    run_describe,
    runs_split,
)
from ..run.ledger_rows import ledger_rows

MOST_ROWS = 60  # of a job; the rest, with the least time, is one row for each measure
SECOND_NS = 1_000_000_000
NOTHING = [0, 0, 0, 0]
MOST_SETTINGS = 40
# variables and versions that describe libraries, not the job
SETTING = re.compile(
    r"env\.(MPICH_|MPIR_|I_MPI_|UC[XC]_|HCOLL_|FI_|PSM|ROMIO_|NCCL_|OMP_|HOROVOD_"
    r"|OMPI_MCA_(?!orte_|ess|initial_wdir$))|cvar\.|build_id\.|(cpu_model|kernel|mpi_version)$"
)
WORLD_RANK = attrgetter("world_rank")


# One rank's file, by the queries of these names; about: rank.sql.
Rank = namedtuple("Rank", "about facts cells durations")
# run: its key; rows: by table, without the part.
Job = namedtuple("Job", "run month rows")


def run_key(files: Sequence[RankFile]) -> int:
    """The same whoever reads the run, and whenever: job ids are used again, but not in a second;
    in that of a job array many programs of one rank may start."""
    run_id, size = files[0].run
    start_ns = min(file.start_unix_ns for file in files)
    return hashed(f"{run_id} {size} {start_ns if size == 1 else start_ns // SECOND_NS}")


def hashed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def job_read(files: Sequence[RankFile]) -> Job:
    """Raises ReportError where no rank's file can be read, or the job still runs."""
    return _job_of(files, _ranks_read(files))


def folder_job(folder: Path) -> Job | None:
    """The job of a folder that has databases of all its ranks. Each is opened once. Nothing, if any
    is missing, damaged, or of another run."""
    files: list[RankFile] = []

    def ranks(paths: Sequence[Path]) -> Iterator[Rank]:
        for path in paths:
            with database_open(path) as (connection, _, _):
                files.append(RankFile(path, False, ranks_in(path, connection)))
                rank = _rank_of(connection)
            if files[0].run[1] != len(paths):
                raise ReportError(folder, "lacks ranks")
            yield rank

    with suppress(OSError, ReportError):
        paths = rank_paths(folder, os.listdir(folder), [])
        databases = [path for path in paths if path.suffix == ".db"]
        job = _job_of(files, ranks(databases)) if databases else None
        known = {rank.world_rank for file in files for rank in file.ranks}
        if len(known) == len(files) and len(runs_split(files)) == 1:
            return job
    return None


def _job_of(files: Sequence[RankFile], ranks: Iterable[Rank]) -> Job:
    """One rank is in memory at a time. files: known once all ranks are read."""
    sums: dict[tuple, list[int]] = {}
    halves: Counter[tuple] = Counter()
    about: list[Row] = []
    first: Rank | None = None
    for rank in ranks:
        _add(rank, sums, halves)
        about.append(rank.about)
        if first is None or rank.about.world_rank < first.about.world_rank:
            first = rank
    about.sort(key=WORLD_RANK)
    facts = present(first).facts
    if any(rank.ended == "running" for rank in about):
        raise ReportError(files[0].folder, f"{run_describe(list(files))} still runs")
    run, day = run_key(files), _day(min(rank.start_unix_ns for rank in about))
    rows, buckets = _folded(sums, halves)
    hosts = _hosts(about)
    settings = [fact for fact in facts.items() if SETTING.match(fact[0])]
    tables = {
        "folder": _own_folders(files),
        "setting": settings[:MOST_SETTINGS],
        "bucket": buckets,
        "host": hosts,
        "row": rows,
        "job": [_job(files, about, facts, day, len(hosts))],
    }
    return Job(run, day[:7], {name: [(run, *row) for row in each] for name, each in tables.items()})


def _own_folders(files: Sequence[RankFile]) -> Iterator[tuple[Path, int]]:
    """Folders that have files of this run alone, and when each has changed last."""
    for folder, own in by(files, lambda file: file.folder).items():
        if {file_of(file.path).name for file in own} == {*filter(is_of_rank, os.listdir(folder))}:
            yield folder, os.stat(folder).st_mtime_ns


def _day(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns // SECOND_NS, timezone.utc).strftime("%Y-%m-%d")


def _ranks_read(files: Sequence[RankFile]) -> Iterator[Rank]:
    """Ranks whose files are damaged are left out."""
    known: set[int] = set()
    why = ReportError(files[0].folder, "holds no rank")
    for file in sorted(files, key=attrgetter("is_ledger")):
        try:
            rank = _file_read(file)
        except ReportError as error:
            why = error
            continue
        if rank.about.world_rank not in known:
            known.add(rank.about.world_rank)
            yield rank
    if not known:
        raise why


def _file_read(file: RankFile) -> Rank:
    if not file.is_ledger:
        with database_open(file.path) as (connection, _, _):
            return _rank_of(connection)
    connection, rows = _memory(), ledger_rows(ledger_read(file.path, False), True)
    try:
        rows_insert(connection, file.path, rows)
        return _rank_of(connection)
    finally:
        for table in rows:
            connection.execute(f"DELETE FROM {table}")


@lru_cache
def _memory() -> sqlite3.Connection:
    """An empty database, which takes longer to make than a ledger to read."""
    return database_create()


def _rank_of(connection: sqlite3.Connection) -> Rank:
    (about,) = query.rows(connection, "fleet/rank")
    facts, *tables = (
        query.run(connection, f"fleet/{name}").fetchall() for name in Rank._fields[1:]
    )
    return Rank(about, dict(facts), *tables)


def _added(known: list[int], values: Sequence[int]) -> list[int]:
    """calls, volume_bytes, total_ns and max_ns of both."""
    return [*(one + other for one, other in zip(known[:3], values)), max(known[3], values[3])]


def _add(rank: Rank, sums: dict[tuple, list[int]], halves: Counter[tuple]) -> None:
    """Calls x roles x classes of sizes x measures, and their histograms."""
    key_of = {}
    for cell, call, family, role, measure, size, *values in rank.cells:
        high = 1 << (size - 1).bit_length() if size else 0
        key = key_of[cell] = call, family, role, high, measure
        sums[key] = _added(sums.get(key, NOTHING), values)
    for cell, half, count in rank.durations:
        if cell in key_of:
            halves[(*key_of[cell], half)] += count


def _folded(
    sums: dict[tuple, list[int]], halves: Counter[tuple]
) -> tuple[list[tuple], list[tuple]]:
    ordered = sorted(sums, key=lambda key: -sums[key][2])
    shown = {key: key for key in ordered[:MOST_ROWS]}
    rows: dict[tuple, list[int]] = {}
    buckets: Counter[tuple] = Counter()
    for key in ordered:
        shown.setdefault(key, ("(other)", "other", "other", 0, key[-1]))
        rows[shown[key]] = _added(rows.get(shown[key], NOTHING), sums[key])
    for (*own, half), count in halves.items():
        call, _, role, size, measure = shown[tuple(own)]
        buckets[(call, role, size, measure, *bounds_ns(half))] += count
    return (
        [(*key, *values) for key, values in rows.items()],
        [(*key, count) for key, count in buckets.items()],
    )


@lru_cache(maxsize=None)
def bounds_ns(half: int) -> tuple[int, int]:
    """Half an octave: from 1 to 1.5, or from 1.5 to 2, times a power of two; the first is below
    16 ns, the last is open and said to be one octave."""
    if half == 0:
        return 0, 16
    octave, upper = divmod(half - 1, 2)
    return (8 + 4 * upper) << (octave + 1), (12 + 4 * upper) << (octave + 1)


def _hosts(ranks: Sequence[Row]) -> list[tuple]:
    """In the order of their lowest ranks. The host that comes last is the one whose ranks spend the
    least time in calls in which all wait for all, or that complete messages: the others wait there
    meanwhile. behind_ns: how much less a rank there than a mean rank of the other hosts."""
    of_host = by(ranks, attrgetter("host"))
    mean_ns = {host: sum(rank.sync_ns for rank in own) / len(own) for host, own in of_host.items()}
    least = [host for host, ns in mean_ns.items() if ns == min(mean_ns.values())]
    whole_ns, rows = sum(mean_ns.values()), []
    for place, (host, own) in enumerate(of_host.items()):
        others_ns = (whole_ns - mean_ns[host]) / max(1, len(of_host) - 1)
        rows.append(
            (
                host,
                place,
                len(own),
                max(rank.wall_ns for rank in own),
                sum(rank.sync_ns for rank in own),
                int(least == [host] and len(of_host) > 1),
                round(others_ns - mean_ns[host]) if len(of_host) > 1 else 0,
            )
        )
    return rows


def _job(
    files: Sequence[RankFile], about: Sequence[Row], facts: dict[str, str], day: str, hosts: int
) -> tuple:
    first, sync_ns = about[0], [rank.sync_ns for rank in about]
    ends = {rank.ended for rank in about}
    ended = next(end for end in ("killed", "abort", "exit", "finalize") if end in ends)
    return (
        first.run_id,
        min(rank.start_unix_ns for rank in about) // SECOND_NS,
        day,
        _user(files[0], facts.get("user_id")),
        facts.get("program", ""),
        units.library_name(facts.get("mpi_version", "")),
        hosts,
        first.world_size,
        len(about),
        ended,
        max(rank.wall_ns for rank in about),
        sum(rank.wall_ns for rank in about),
        sum(rank.in_mpi_ns for rank in about),
        sum(sync_ns),
        sum(sync_ns) - min(sync_ns) * len(about),
    )


def _user(file: RankFile, user_id: str | None) -> str:
    """Their name where this machine knows it. The files belong to the user, if nothing else says
    who it was."""
    with suppress(OSError, KeyError, ValueError, OverflowError):
        number = int(user_id) if user_id else os.stat(file_of(file.path)).st_uid
        with suppress(KeyError):
            return pwd.getpwuid(number).pw_name
        return str(number)
    return ""
