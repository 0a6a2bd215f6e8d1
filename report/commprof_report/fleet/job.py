"""A job as rows of the store: the counters of its ranks, added up. Single calls are not read."""

from __future__ import annotations

import hashlib
import os
import pwd
import sqlite3
from collections import Counter, namedtuple
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from operator import attrgetter

from ..base import ReportError, gathered, query, units
from ..base.summarize import pow2
from ..run.database import database_count, database_create, file_of, rows_insert
from ..run.ledger import ledger_read
from ..run.ledger_rows import ledger_rows
from ..run.rank_files import RankFile, run_describe

SQL = query.beside(__file__)
MOST_ROWS = 60  # of a job; the rest, with the least time, is one row for each measure
SECOND_NS = 1_000_000_000
NOTHING = [0, 0, 0, 0]


# One rank's file, by the queries of these names; about: rank.sql.
Rank = namedtuple("Rank", "about cells durations settings")
# run: its key; rows: by table, without the part.
Job = namedtuple("Job", "run month rows")


def run_key(files: Sequence[RankFile]) -> int:
    """The same whoever reads the run, and whenever: job ids are used again, but not in a second."""
    run_id, size = files[0].run
    start_s = min(file.start_unix_ns for file in files) // SECOND_NS
    return hashed(f"{run_id} {size} {start_s}")


def hashed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def job_read(files: Sequence[RankFile]) -> Job:
    """Raises ReportError where no rank's file can be read, or the job still runs."""
    ranks = sorted(_ranks_read(files), key=lambda rank: rank.about.world_rank)
    if any(rank.about.ended == "running" for rank in ranks):
        raise ReportError(files[0].folder, f"{run_describe(list(files))} still runs")
    run, day = run_key(files), _day(min(rank.about.start_unix_ns for rank in ranks))
    rows, buckets = _rows(ranks)
    hosts = _hosts(ranks)
    return Job(
        run,
        day[:7],
        {
            "setting": [(run, *setting) for setting in ranks[0].settings],
            "bucket": [(run, *bucket) for bucket in buckets],
            "host": [(run, *host) for host in hosts],
            "row": [(run, *row) for row in rows],
            "job": [(run, *_job(files, ranks, day, len(hosts)))],
        },
    )


def _day(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns // SECOND_NS, timezone.utc).strftime("%Y-%m-%d")


def _ranks_read(files: Sequence[RankFile]) -> list[Rank]:
    """Ranks whose files are damaged are left out."""
    ranks: dict[int, Rank] = {}
    why = ReportError(files[0].folder, "holds no rank")
    for file in sorted(files, key=attrgetter("is_ledger")):
        try:
            for rank in _file_read(file):
                ranks.setdefault(rank.about.world_rank, rank)
        except ReportError as error:
            why = error
    if not ranks:
        raise why
    return list(ranks.values())


def _file_read(file: RankFile) -> list[Rank]:
    if not file.is_ledger:
        return database_count(file.path, lambda connection, _: [_rank_of(connection)])
    connection = database_create()
    rows_insert(connection, file.path, ledger_rows(ledger_read(file.path, False), True))
    return [_rank_of(connection)]


def _rank_of(connection: sqlite3.Connection) -> Rank:
    (about,) = SQL.rows(connection, "rank")
    tables = (SQL.run(connection, name).fetchall() for name in Rank._fields[1:])
    return Rank(about, *tables)


def _added(known: list[int], values: Sequence[int]) -> list[int]:
    """calls, volume_bytes, total_ns and max_ns of both."""
    return [*(one + other for one, other in zip(known[:3], values)), max(known[3], values[3])]


def _rows(ranks: Iterable[Rank]) -> tuple[list[tuple], list[tuple]]:
    """Calls x roles x classes of sizes x measures, and their histograms."""
    sums: dict[tuple, list[int]] = {}
    halves: Counter[tuple] = Counter()
    for rank in ranks:
        key_of = {}
        for cell, call, family, role, measure, size, *values in rank.cells:
            key = key_of[cell] = call, family, role, pow2(size, False)[1], measure
            sums[key] = _added(sums.get(key, NOTHING), values)
        for cell, half, count in rank.durations:
            if cell in key_of:
                halves[(*key_of[cell], half)] += count
    return _folded(sums, halves)


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


def bounds_ns(half: int) -> tuple[int, int]:
    """Half an octave: from 1 to 1.5, or from 1.5 to 2, times a power of two; the first is below
    16 ns, the last is open and said to be one octave."""
    if half == 0:
        return 0, 16
    octave, upper = divmod(half - 1, 2)
    return (8 + 4 * upper) << (octave + 1), (12 + 4 * upper) << (octave + 1)


def _hosts(ranks: Sequence[Rank]) -> list[tuple]:
    """In the order of their lowest ranks. The host that comes last is the one whose ranks spend the
    least time in calls in which all wait for all, or that complete messages: the others wait there
    meanwhile. behind_ns: how much less a rank there than a mean rank of the other hosts."""
    of_host = gathered((rank.about.host, rank.about) for rank in ranks)
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


def _job(files: Sequence[RankFile], ranks: Sequence[Rank], day: str, hosts: int) -> tuple:
    about = [rank.about for rank in ranks]
    first, sync_ns = about[0], [rank.sync_ns for rank in about]
    ends = {rank.ended for rank in about}
    ended = next(end for end in ("killed", "abort", "exit", "finalize") if end in ends)
    return (
        first.run_id,
        min(rank.start_unix_ns for rank in about) // SECOND_NS,
        day,
        _user(files[0], first.user_id),
        first.program,
        units.library_name(first.mpi_version),
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
