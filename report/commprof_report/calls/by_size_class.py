"""Calls by the size classes of hvprof, over the run and in a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from sqlite3 import Connection
from typing import Any

from ..base import query
from ..base.arrays import np
from ..base.bins import HVPROF_BOUNDS, hvprof_classes
from ..base.columns import NONE, Flags, Floats, Ints, found_in
from ..base.query import Row
from ..base.summarize import Sums, View, durations, measures, own, ratio, summarize, total
from ..run.cells import Cells, cells_of, columns_of

SQL = query.beside(__file__)
LOW_BYTES, HIGH_BYTES = (  # no arrays: manual pages are written without numpy
    [NONE if bound is None else bound for bound in bounds] for bounds in zip(*hvprof_classes())
)


def size_class(cells: Cells) -> Ints:
    return np.searchsorted(HVPROF_BOUNDS, cells.bytes)


def is_start(groups: Sums) -> Flags:
    return groups.is_in("timed", "call") & ~groups.is_in("form", "blocking")


def hvprof_view(fusion: str = "", per_rank: bool = False, in_step: Any = None) -> View:
    """A call in one of hvprof's size classes. Figures of a step are means over the given steps and
    their ranks; null: none are given, or not timed."""
    by_rank = ("world_rank",) if per_rank else ()

    def rank(groups: Sums) -> Ints:
        return groups.world_rank if per_rank else np.full(len(groups), NONE)

    def of_call(groups: Sums) -> np.ndarray:
        return groups.spread(groups.sum("total_ns"), "call", "timed", *by_rank)

    def stepped(name: str) -> Callable[[Sums], Floats]:
        return lambda groups: in_step(groups, name)

    return View(
        "HvprofRow",
        ("call", "timed", "traffic", size_class, *by_rank),
        {
            "fusion": lambda groups: fusion,
            "library": lambda groups: np.where(groups.is_in("library", "nccl"), "NCCL", "MPI"),
            **own("call", "family", "traffic"),
            "rank": rank,
            "bytes_low": lambda groups: np.array(LOW_BYTES)[groups.keys[3]],
            "bytes_high": lambda groups: np.array(HIGH_BYTES)[groups.keys[3]],
            **measures("ranks", "count"),
            "sizes": lambda groups: groups.distinct("bytes"),
            "smallest_bytes": lambda groups: groups.min("bytes"),
            "largest_bytes": lambda groups: groups.max("bytes"),
            "message_bytes": total("message_bytes"),
            **durations(50, 99),
            "is_start": is_start,
            "share_of_call": lambda groups: ratio(groups.sum("total_ns"), of_call(groups)),
            "measure": "timed",
            "calls_per_step": stepped("calls"),
            "bytes_per_step": stepped("bytes"),
            "time_per_step_ns": stepped("spent_ns"),
        },
        lambda groups: (
            -groups.spread(groups.sum("total_ns"), "call"), groups.place("call"),
            groups.is_in("timed", "call"), groups.place("timed"), rank(groups),
            groups.place("traffic"), groups.keys[3],
        ),
        where=lambda cells: ~cells.is_in("bandwidth", "silent"),
    )


def hvprof_rows(
    connection: Connection,
    fusion: str,
    per_rank: bool = False,
    steps: Iterable[tuple[int, int, int]] = (),
) -> list[Row]:
    """steps: world_rank, begin_ns, end_ns of those in which all calls are sampled."""
    cells, steps = cells_of(connection), list(steps)
    SQL.run(connection, "hvprof_step")
    connection.executemany("INSERT INTO hvprof_step VALUES (?, ?, ?)", steps)
    sampled = columns_of(SQL.run(connection, "hvprof"), cells.texts)
    place = found_in([sampled["cell"]], [cells.cell])
    steps_of = Counter(rank for rank, _, _ in steps if rank in cells.counted)

    def in_step(groups: Sums, name: str) -> Floats:
        group = np.append(groups.of_rows(None), -1)[place]
        values = np.where(sampled[name] == NONE, np.nan, sampled[name])[group >= 0]
        sums = np.bincount(group[group >= 0], values, len(groups))
        if not per_rank:
            return ratio(sums, sum(steps_of.values()))
        return ratio(sums, np.array([steps_of[rank] for rank in groups.world_rank.tolist()]))

    return summarize(cells, hvprof_view(fusion, per_rank, in_step))
