"""Single activities of GPUs: when all of a device were sampled, and their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter, itemgetter
from sqlite3 import Connection

from ..base import query
from ..base.columns import Columns, Texts, joined, np, read
from ..base.thresholds import threshold
from ..run.sampled import sampled
from .overlap import IN_MPI, Spans, common, joined as spans_joined

SQL = query.beside(__file__)

NO_DEVICE = 0  # of a rank in MPI
OTHER_STREAM = 1023  # represents several streams, of any device


def incomplete_ranks(connection: Connection) -> dict[int, int | None]:
    """Ranks whose times in each state, and samples, lack too much, as records came too late; and
    how long the missing activities were (None: not known)."""
    return dict(SQL.run(connection, "gpu_late", most_share=threshold("gpu.late")))


def activities(connection: Connection) -> Columns:
    """The sampled activities of GPUs, each as one of the states of overlap.py."""
    return read(Columns, SQL.run(connection, "gpu_intervals"), Texts())


def intervals(connection: Connection) -> Columns:
    """The same beside the sampled calls of MPI, which are on no device; in the order of ranks."""
    texts, calls, _, _ = sampled(connection)
    of_mpi = connection.execute("SELECT name FROM call WHERE library = 'mpi'")
    calls = calls.take(texts.among(calls.call, {name for (name,) in of_mpi}))
    in_mpi = calls.changed(
        device=np.full(len(calls), NO_DEVICE), state=np.full(len(calls), IN_MPI)
    )
    found = joined(Columns, [activities(connection), in_mpi])
    return found.take(np.argsort(found.world_rank, kind="stable"))


def on_device(active: Columns, rank: int, device: int) -> Columns:
    """Intervals of a device of a rank, and of the rank in MPI."""
    of_rank = active.take(slice(*np.searchsorted(active.world_rank, [rank, rank + 1])))
    return of_rank.take(np.isin(of_rank.device, (device, NO_DEVICE)))


def known_spans(connection: Connection) -> dict[int, dict[int, Spans]]:
    """By rank and device, the spans in which all activities of the device were sampled."""
    by_rank = groupby(_tracings(connection), key=itemgetter(0))
    traced = {rank: spans_joined(row[1:] for row in rows) for rank, rows in by_rank}
    unsure = _with_other_streams(connection)
    incomplete = incomplete_ranks(connection)
    known: dict[int, dict[int, Spans]] = {}
    windows_of_all = SQL.rows(connection, "gpu_sampled")
    for (rank, device), of_device in groupby(windows_of_all, key=attrgetter("rank", "device")):
        spans = traced.get(rank, [])
        for _, rows in groupby(of_device, key=attrgetter("stream")):
            windows = ((row.begin_ns, row.end_ns) for row in rows)
            known_windows = ((a, b) for a, b in windows if a is not None and b is not None)
            spans = common(spans, spans_joined(known_windows))
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
