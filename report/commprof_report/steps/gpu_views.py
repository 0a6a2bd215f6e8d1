"""Activity of the GPUs in the parts of a run that are drawn, where all their activities were
sampled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.arrays import np
from ..base.columns import Columns, Ints, Texts, by_rank, read
from ..gpu.overlap import COMMUNICATING, COMPUTING, COPYING, Interval, common, joined, pieces
from ..gpu.sampled import Spans
from ..run.alignment import Alignment

SQL = query.beside(__file__)

FINEST = 4_000  # shorter gaps than this part of a view are closed
NOT_SAMPLED = 0


class GpuView(NamedTuple):
    """A GPU of a rank. pieces: with the states in which it was at once, or NOT_SAMPLED; it was idle
    between them."""

    number: int
    pieces: list[Interval]


class OnGpu(NamedTuple):
    """Activity on a device of a rank, on the run's axis."""

    rank: int
    number: int
    known: Spans
    busy: dict[int, Spans]  # by state


@dataclass(frozen=True)
class Activities(Columns):
    """gpu_view_intervals.sql"""

    world_rank: Ints
    device: Ints
    state: Ints
    start_ns: Ints
    end_ns: Ints


def on_gpus(
    connection: Connection, alignment: Alignment, drawn: Mapping[int, Spans],
    known: Mapping[int, Mapping[int, Spans]],
) -> list[OnGpu]:
    """drawn: by rank, in its own time. known: when all activities of its devices were sampled."""
    if not known:
        return []
    busy: dict[tuple[int, int], dict[int, Spans]] = {}
    rows = read(Activities, SQL.run(connection, "gpu_view_intervals"), Texts())
    rows = rows.take(_is_drawn(rows, drawn))
    times = (alignment.aligned(rows.world_rank, own) for own in (rows.start_ns, rows.end_ns))
    columns = (rows.world_rank, rows.device, rows.state, *times)
    for rank, device, state, *span in zip(*(column.tolist() for column in columns)):
        busy.setdefault((rank, device), {}).setdefault(state, []).append((span[0], span[1]))
    numbers = connection.execute(
        "SELECT world_rank, device, number FROM gpu_device ORDER BY world_rank, number"
    )
    found = []
    for rank, device, number in numbers:
        own = common(joined(drawn.get(rank, ())), known.get(rank, {}).get(device, []))
        if own:
            spans = [
                (alignment.aligned_ns(rank, begin_ns), alignment.aligned_ns(rank, end_ns))
                for begin_ns, end_ns in own
            ]
            found.append(OnGpu(rank, number, spans, busy.get((rank, device), {})))
    return found


def _is_drawn(rows: Activities, drawn: Mapping[int, Spans]) -> np.ndarray:
    found = np.zeros(len(rows), bool)
    for rank, own in by_rank(rows.world_rank):
        begins, ends = np.array(joined(drawn.get(rank, ())), np.int64).reshape(-1, 2).T
        last = np.searchsorted(begins, rows.end_ns[own]) - 1  # that begins before it ends
        found[own] = np.append(ends, 0)[last] > np.where(last < 0, 0, rows.start_ns[own])
    return found


def gpu_views(
    gpus: list[OnGpu], begin_ns: int, end_ns: int, most_pieces: int
) -> tuple[dict[int, list[GpuView]], int]:
    """By rank; and the length of the shortest gap that is left."""
    gap_ns = (end_ns - begin_ns) // FINEST
    while True:
        views: dict[int, list[GpuView]] = {}
        for gpu in gpus:
            if drawn := list(_pieces(gpu, begin_ns, end_ns, gap_ns)):
                views.setdefault(gpu.rank, []).append(GpuView(gpu.number, drawn))
        if (
            sum(len(view.pieces) for view in chain.from_iterable(views.values())) <= most_pieces
            or gap_ns >= end_ns - begin_ns
        ):
            return views, gap_ns
        gap_ns = 2 * gap_ns + 1


def _pieces(gpu: OnGpu, begin_ns: int, end_ns: int, gap_ns: int) -> Iterator[Interval]:
    """Nothing if it is not known at all."""
    known = common(gpu.known, [(begin_ns, end_ns)])
    if not known:
        return
    closed = (
        (state, common(joined(gpu.busy.get(state, ()), gap_ns), known))
        for state in (COMPUTING, COMMUNICATING, COPYING)
    )
    busy = pieces((*span, state) for state, spans in closed for span in spans)
    edges = [begin_ns, *chain.from_iterable(known), end_ns]
    unknown = (
        (since_ns, until_ns, NOT_SAMPLED) for since_ns, until_ns in zip(edges[::2], edges[1::2])
        if since_ns < until_ns
    )
    yield from sorted(chain(busy, unknown), key=itemgetter(0))
