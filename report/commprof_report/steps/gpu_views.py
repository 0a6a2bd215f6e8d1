"""Activity of the GPUs of a run, to be drawn, where all their activities were sampled."""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Connection
from typing import NamedTuple

from ..base.arrays import np
from ..base.columns import NONE, Columns, Ints, grouped
from ..gpu import sampled
from ..gpu.overlap import COMMUNICATING, COMPUTING, COPYING, Spans
from ..run.alignment import Alignment

NOT_SAMPLED = 0


class OnGpu(NamedTuple):
    """Activity on a device of a rank, on the run's axis."""

    rank: int
    number: int
    known: Spans
    active: Columns  # all of it


def activities(connection: Connection, alignment: Alignment) -> Columns:
    """On the run's axis."""
    rows = sampled.activities(connection)
    times = (alignment.aligned(rows.world_rank, own) for own in (rows.start_ns, rows.end_ns))
    return rows.changed(**dict(zip(("start_ns", "end_ns"), times)))


def on_gpus(
    connection: Connection, alignment: Alignment, known: Mapping[int, Mapping[int, Spans]],
    active: Columns,
) -> list[OnGpu]:
    """The devices with known activity. known: when all activities of a rank's devices were
    sampled, in its own time."""
    order, groups = grouped(active.world_rank, active.device)
    first = order[groups.first]
    keys = zip(active.world_rank[first].tolist(), active.device[first].tolist())
    rows_of = dict(zip(keys, np.split(order, groups.first[1:])))
    numbers = connection.execute(
        "SELECT world_rank, device, number FROM gpu_device ORDER BY world_rank, number"
    )
    found = []
    for rank, device, number in numbers:
        spans = [
            (alignment.aligned_ns(rank, begin_ns), alignment.aligned_ns(rank, end_ns))
            for begin_ns, end_ns in known.get(rank, {}).get(device, ())
        ]
        if spans:
            own = active.take(rows_of.get((rank, device), np.array([], np.int64)))
            found.append(OnGpu(rank, number, spans, own))
    return found


def in_spans(begin_ns: Ints, end_ns: Ints, spans: Spans) -> np.ndarray:
    """Whether a time overlaps any of the spans, which are disjoint and in order."""
    begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
    last = np.searchsorted(begins, end_ns) - 1  # that begins before it ends
    return (last >= 0) & (np.append(ends, 0)[last] > begin_ns)


def spent(gpu: OnGpu, edges_ns: Ints) -> np.ndarray:
    """For each bin the time in which the GPU computed, in which it communicated without that, in
    which it only copied, in which this is not known; it was idle in the rest."""
    begins, ends = np.array(gpu.known, np.int64).reshape(-1, 2).T
    rows = gpu.active
    columns = (
        (rows.state, rows.start_ns, rows.end_ns), (np.full(len(begins), NOT_SAMPLED), begins, ends)
    )
    state, start_ns, end_ns = (np.concatenate(pair) for pair in zip(*columns))
    at_ns = np.concatenate([start_ns, end_ns, edges_ns[[0, -1]]])
    order = np.argsort(at_ns, kind="stable")
    steps = np.concatenate([np.ones(len(state)), -np.ones(len(state)), [0, 0]])[order]
    of = np.concatenate([state, state, [NONE, NONE]])[order]
    runs, computes, communicates, copies = (
        np.cumsum(np.where(of == one, steps, 0)) > 0
        for one in (NOT_SAMPLED, COMPUTING, COMMUNICATING, COPYING)
    )
    kinds = [
        runs & computes, runs & communicates & ~computes,
        runs & copies & ~communicates & ~computes, ~runs,
    ]
    times, lasted_ns = at_ns[order], np.diff(at_ns[order], append=at_ns.max())
    upto_ns = (
        np.interp(edges_ns, times, np.cumsum(np.append(0, kind * lasted_ns))[:-1])
        for kind in kinds
    )
    return np.rint(np.stack([np.diff(one) for one in upto_ns], axis=1)).astype(np.int64)
