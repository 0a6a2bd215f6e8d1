"""Calls by the size classes of hvprof, over the run and in a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from sqlite3 import Connection
from typing import Any

from ..base import query, units
from ..base.columns import NONE, Flags, Floats, Ints, found_in, np
from ..base.summarize import HVPROF_BOUNDS, Sums, View, hvprof_classes, ratio, summarize, total
from ..base.field import Field, Row, number, text
from ..run.selection import Cells, cells_of, columns_of
from .views import timed_on

SQL = query.beside(__file__)
LOW_BYTES, HIGH_BYTES = (  # no arrays: manual pages are written without numpy
    [NONE if bound is None else bound for bound in bounds] for bounds in zip(*hvprof_classes())
)


def size_class(cells: Cells) -> Ints:
    return np.searchsorted(HVPROF_BOUNDS, cells.bytes)


def is_start(groups: Sums) -> Flags:
    return groups.is_in("timed", "call") & ~groups.is_in("form", "blocking")


def in_a_step(key: str, show: Callable[[float], str]) -> Callable[[Row], str]:
    """No call of the row is in a step: -."""
    return lambda row: show(getattr(row, key)) if getattr(row, key) else units.NO_VALUE


HVPROF = (
    text(
        "fusion",
        "`as run`: from RUN, whatever its fusion was; `unfused`: from the run given with "
        "`--unfused`",
        "fusion",
    ),
    Field(
        "library", "`MPI` or `NCCL`",
        of=lambda groups: np.where(groups.is_in("library", "nccl"), "NCCL", "MPI"),
    ),
    text("call", "the call and its family", "call"),
    Field("family", ""),
    text(
        "traffic",
        "`bulk`, `control`, `alone` ([traffic](#traffic)); in text `negotiation` for the control "
        "of a run with threads that negotiate",
        "traffic",
    ),
    number("rank", "null without `--per-rank`", "rank"),
    Field(
        "bytes_low",
        "bounds of the class, both included; null: open. 0; up to 128 KiB; 16 MiB; 32 MiB; 64 MiB; "
        "above",
        "size class", is_number=False,
        of_row=lambda row: units.size_range(row.bytes_low, row.bytes_high),
        of=lambda groups: np.array(LOW_BYTES)[groups.keys[3]],
    ),
    Field("bytes_high", "", of=lambda groups: np.array(HIGH_BYTES)[groups.keys[3]]),
    Field("ranks", "ranks that made such calls"),
    Field("count", "calls", "calls"),
    Field(
        "sizes", "how many different sizes; the smallest and the largest", "sizes",
        of=lambda groups: groups.distinct("bytes"),
    ),
    Field(
        "smallest_bytes", "", "least", units.size, of=lambda groups: groups.min("bytes"),
    ),
    Field("largest_bytes", "", "largest", units.size, of=lambda groups: groups.max("bytes")),
    Field("message_bytes", "sum of count x bytes", "bytes", of=total("message_bytes")),
    Field("total_ns", "durations", "time"),
    Field("mean_ns", "", "per call"),
    Field("min_ns", ""),
    Field("p50_ns", "", "p50"),
    Field("p99_ns", "", "p99"),
    Field("max_ns", ""),
    Field(
        "is_start", "1: the call starts an operation; the time is that of starting it", of=is_start
    ),
    Field(
        "share_of_call",
        "total_ns / total_ns of this call in all classes (of the same rank, with `--per-rank`)",
        "of call", units.share,
    ),
    Field(
        "measure", "see [Words](#words). Text omits the host if the device was timed", "timed on",
        is_number=False, of_row=timed_on, of="timed",
    ),
    Field(
        "calls_per_step",
        "in a step on a rank: calls; count x bytes; durations (device: of the kernels). Null: "
        "there are no such steps",
        "calls a step", of_row=in_a_step("calls_per_step", units.three_digits),
    ),
    Field("bytes_per_step", "", "bytes a step", of_row=in_a_step("bytes_per_step", units.size)),
    Field(
        "time_per_step_ns", "", "time a step", of_row=in_a_step("time_per_step_ns", units.duration)
    ),
)


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

    known = {
        "fusion": lambda groups: fusion, "rank": rank,
        "share_of_call": lambda groups: ratio(groups.sum("total_ns"), of_call(groups)),
        "calls_per_step": stepped("calls"), "bytes_per_step": stepped("bytes"),
        "time_per_step_ns": stepped("spent_ns"),
    }
    return View(
        "HvprofRow",
        ("call", "timed", "traffic", size_class, *by_rank),
        tuple(field._replace(of=known.get(field.key, field.of)) for field in HVPROF),
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
