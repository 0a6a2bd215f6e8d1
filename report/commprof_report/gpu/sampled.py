"""Single activities of GPUs: when all of a device were sampled, and their intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from operator import attrgetter, itemgetter
from sqlite3 import Connection

from ..base import query
from ..base.gather import gathered
from ..base.thresholds import threshold
from .overlap import Interval, common, joined

SQL = query.beside(__file__)

NO_DEVICE = 0  # in gpu_intervals.sql: time of the rank in MPI
OTHER_STREAM = 1023  # represents several streams, of any device

Spans = list[tuple[int, int]]


def incomplete_ranks(connection: Connection) -> dict[int, int | None]:
    """Ranks whose times in each state, and samples, lack too much, as records came too late; and
    how long the missing activities were (None: not known)."""
    return dict(SQL.run(connection, "gpu_late", most_share=threshold("gpu.late")))


def intervals(
    connection: Connection, ranks: Collection[int]
) -> Iterator[tuple[int, dict[int, list[Interval]]]]:
    """For each of these ranks, its intervals by device."""
    idle = set(ranks)
    rows = SQL.run(connection, "gpu_intervals") if ranks else ()
    for rank, of_rank in groupby(rows, key=itemgetter(0)):
        if rank in idle:
            idle.remove(rank)
            yield rank, gathered(
                (device, (start_ns, end_ns, state))
                for _, device, state, start_ns, end_ns in of_rank
            )
    for rank in sorted(idle):
        yield rank, {}


def known_spans(connection: Connection) -> dict[int, dict[int, Spans]]:
    """By rank and device, the spans in which all activities of the device were sampled."""
    by_rank = groupby(_tracings(connection), key=itemgetter(0))
    traced = {rank: joined(row[1:] for row in rows) for rank, rows in by_rank}
    unsure = _with_other_streams(connection)
    incomplete = incomplete_ranks(connection)
    known: dict[int, dict[int, Spans]] = {}
    sampled = SQL.rows(connection, "gpu_sampled")
    for (rank, device), of_device in groupby(sampled, key=attrgetter("rank", "device")):
        spans = traced.get(rank, [])
        for _, rows in groupby(of_device, key=attrgetter("stream")):
            windows = ((row.begin_ns, row.end_ns) for row in rows)
            known_windows = ((a, b) for a, b in windows if a is not None and b is not None)
            spans = common(spans, joined(known_windows))
        known.setdefault(rank, {})[device] = spans
    return {
        rank: devices for rank, devices in known.items() if any(devices.values())
        and not (rank in unsure and len(devices) > 1) and rank not in incomplete
    }


def _with_other_streams(connection: Connection) -> set[int]:
    """Ranks some of whose streams are not attributed to a device."""
    found = connection.execute(
        "SELECT world_rank FROM gpu_stream WHERE stream = ?", (OTHER_STREAM,)
    )
    return {rank for (rank,) in found}


def _tracings(connection: Connection) -> Iterator[tuple[int, int, int]]:
    return connection.execute(
        "SELECT world_rank, begin_ns, end_ns FROM gpu_tracing ORDER BY world_rank"
    )
