"""Activity of the GPUs in the parts of a run that are drawn (temp.step_view_window), where all
their activities were sampled."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..gpu.overlap import COMMUNICATING, COMPUTING, COPYING, Interval, common, joined, pieces
from ..gpu.sampled import Spans, known_spans
from .boundaries import AlignedNs

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


def on_gpus(connection: Connection, aligned_ns: AlignedNs) -> list[OnGpu]:
    known = known_spans(connection)
    drawn: dict[int, Spans] = {}
    for rank, begin_ns, end_ns in connection.execute(
        "SELECT world_rank, begin_ns, end_ns FROM temp.step_view_window"
    ):
        drawn.setdefault(rank, []).append((begin_ns, end_ns))
    busy: dict[tuple[int, int], dict[int, Spans]] = {}
    for rank, device, state, begin_ns, end_ns in (
        SQL.run(connection, "gpu_view_intervals") if known else ()
    ):
        span = aligned_ns(rank, begin_ns), aligned_ns(rank, end_ns)
        busy.setdefault((rank, device), {}).setdefault(state, []).append(span)
    numbers = connection.execute(
        "SELECT world_rank, device, number FROM gpu_device ORDER BY world_rank, number"
    )
    found = []
    for rank, device, number in numbers:
        own = common(joined(drawn.get(rank, ())), known.get(rank, {}).get(device, []))
        if own:
            spans = [
                (aligned_ns(rank, begin_ns), aligned_ns(rank, end_ns)) for begin_ns, end_ns in own
            ]
            found.append(OnGpu(rank, number, spans, busy.get((rank, device), {})))
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
