"""Calls by size and duration: the size classes of hvprof, over the run and in a step; the histogram
of a call's durations; and the cost of sizes that are no powers of two, the finding of hvprof's
paper, as a number.

    duration    o           x: a size between two powers of two
    (log)       |   x    .o    o: powers of two
                | .  '  '      the line through the neighbours is straight on logarithmic axes
                o'
                +------------- size (log)

Compared are medians, which single late arrivals do not change.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log2
from typing import Any

from ..base import (
    AS_EVERYWHERE,
    Connection,
    Field,
    Floats,
    HVPROF_BOUNDS,
    HVPROF_HIGH,
    HVPROF_LOW,
    NONE,
    Row,
    Sums,
    View,
    found_in,
    gathered,
    line_ns,
    np,
    number,
    query,
    ratio,
    row_type,
    summarize,
    summed,
    text,
    threshold,
    total,
    units,
)
from ..run import cells_of, columns_of
from .views import best_timed, one_rank, timed_on


def in_a_step(key: str, show: Callable[[float], str]) -> Callable[[Row], str]:
    """No call of the row is in a step: -."""
    return lambda row: show(getattr(row, key)) if getattr(row, key) else units.NO_VALUE


HVPROF = (
    text(
        "fusion",
        "`as run`; `unfused`: from the run given with `--unfused`",
        "fusion",
    ),
    Field(
        "library",
        "`MPI` or `NCCL`",
        of=lambda groups: np.where(groups.is_in("library", "nccl"), "NCCL", "MPI"),
    ),
    text("call", AS_EVERYWHERE, "call"),
    Field("family", ""),
    text(
        "traffic",
        "`bulk`, `control`, `alone` ([traffic](#traffic)); in text `negotiation` is the "
        "control of threads that negotiate",
        "traffic",
    ),
    number("rank", "null without `--per-rank`", "rank"),
    Field(
        "bytes_low",
        "bounds of the class (bins `hvprof` of [sizes](#sizes)), both included; null: open",
        "size class",
        is_number=False,
        of_row=lambda row: units.size_range(row.bytes_low, row.bytes_high),
        of=lambda groups: np.array(HVPROF_LOW)[groups.keys[3]],
    ),
    Field("bytes_high", "", of=lambda groups: np.array(HVPROF_HIGH)[groups.keys[3]]),
    Field("ranks", AS_EVERYWHERE),
    Field("count", "", "calls"),
    Field(
        "sizes",
        "how many different sizes; the smallest and the largest",
        "sizes",
        of=lambda groups: groups.distinct("bytes"),
    ),
    Field(
        "smallest_bytes",
        "",
        "least",
        units.size,
        of=lambda groups: groups.min("bytes"),
    ),
    Field("largest_bytes", "", "largest", units.size, of=lambda groups: groups.max("bytes")),
    Field("message_bytes", "sum of count x bytes", "bytes", of=total("message_bytes")),
    Field("total_ns", AS_EVERYWHERE, "time"),
    Field("mean_ns", "", "per call"),
    Field("min_ns", ""),
    Field("p50_ns", "", "p50"),
    Field("p99_ns", "", "p99"),
    Field("max_ns", ""),
    Field(
        "is_start",
        "1: the call starts an operation, and is timed alone",
        of=lambda groups: groups.is_in("timed", "call") & ~groups.is_in("form", "blocking"),
    ),
    Field(
        "share_of_call",
        "total_ns / total_ns of this call in all classes",
        "of call",
        units.share,
    ),
    Field(
        "measure",
        AS_EVERYWHERE,
        "timed on",
        is_number=False,
        of_row=timed_on,
        of="timed",
    ),
    Field(
        "calls_per_step",
        "in a step on a rank: calls; count x bytes; durations; null: no such steps",
        "calls a step",
        of_row=in_a_step("calls_per_step", units.three_digits),
    ),
    Field("bytes_per_step", "", "bytes a step", of_row=in_a_step("bytes_per_step", units.size)),
    Field(
        "time_per_step_ns", "", "time a step", of_row=in_a_step("time_per_step_ns", units.duration)
    ),
)


def hvprof_view(fusion: str = "", per_rank: bool = False, in_step: Any = None) -> View:
    """A call in one of hvprof's size classes. Figures of a step are means over the given steps and
    their ranks; null: none are given, or not timed."""
    by_rank, rank = ("world_rank",) if per_rank else (), one_rank(per_rank)

    def of_call(groups: Sums) -> np.ndarray:
        return groups.spread(groups.sum("total_ns"), "call", "timed", *by_rank)

    def stepped(name: str) -> Callable[[Sums], Floats]:
        return lambda groups: in_step(groups, name)

    known = {
        "fusion": lambda groups: fusion,
        "rank": rank,
        "share_of_call": lambda groups: ratio(groups.sum("total_ns"), of_call(groups)),
        "calls_per_step": stepped("calls"),
        "bytes_per_step": stepped("bytes"),
        "time_per_step_ns": stepped("spent_ns"),
    }
    return View(
        "HvprofRow",
        (
            "call",
            "timed",
            "traffic",
            lambda cells: np.searchsorted(HVPROF_BOUNDS, cells.bytes),
            *by_rank,
        ),
        tuple(field._replace(of=known.get(field.key, field.of)) for field in HVPROF),
        lambda groups: (
            -groups.spread(groups.sum("total_ns"), "call"),
            groups.place("call"),
            groups.is_in("timed", "call"),
            groups.place("timed"),
            rank(groups),
            groups.place("traffic"),
            groups.keys[3],
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
    query.run(connection, "calls/hvprof_step")
    connection.executemany("INSERT INTO hvprof_step VALUES (?, ?, ?)", steps)
    sampled = columns_of(query.run(connection, "calls/hvprof"), cells.texts)
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


LEAST_NS = 8  # drawn as the lower bound of the first bucket, which has none on a logarithmic axis


LATENCY = (  # buckets have different widths on a logarithmic axis
    Field("call", "the call and sizes shown (null: no upper bound)"),
    Field("bytes_low", ""),
    Field("bytes_high", ""),
    Field("low_ns", "bounds of the bucket; the last bucket ends at the maximum duration", "from"),
    Field("high_ns", "", "to"),
    Field("count", "calls in the bucket; over all calls shown", "count"),
    Field("share", "", "share"),
    Field("cumulative_share", "calls in this bucket and below, over all", "up to here"),
    Field(
        "measure",
        "what the durations measure; `completion` if operations of the call have completed",
    ),
    Field(
        "density",
        "count / log2(high_ns / low_ns), with 8 ns as low_ns of the first bucket",
    ),
)
LatencyRow = row_type("LatencyRow", LATENCY)


def latency_rows(
    connection: Connection, call: str, low: int | None, high: int | None, measure: str = "call"
) -> list[Row]:
    """One row per bucket in use. high: of a bucket without a bound, the longest duration."""
    cells = cells_of(connection)
    flags = cells.is_in("call", call) & cells.is_in("timed", measure)
    flags &= cells.bytes_low >= (low or 0)
    if high is not None:
        flags &= cells.bytes_high <= high
    found = summed(cells.histogram, np.where(flags, 0, -1))
    low_ns, high_ns = (bounds[found.bucket] for bounds in (found.low_ns, found.high_ns))
    high_ns = np.where(high_ns, high_ns, cells.max_ns[flags].max(initial=0))
    whole = found.count.sum()
    rows = zip(
        low_ns.tolist(),
        high_ns.tolist(),
        map(int, found.count.tolist()),
        (found.count / whole).tolist(),
        (np.cumsum(found.count) / whole).tolist(),
    )
    made = (LatencyRow(call, low, high, *values, measure, 0.0) for values in rows)
    return [row._replace(density=row.count / octaves(row)) for row in made]


def merged(rows: Sequence[Row], most: int) -> list[Row]:
    """At most so many rows: as many neighbouring ones as it takes are one."""
    size = max(1, -(-len(rows) // most))
    groups = (rows[first : first + size] for first in range(0, len(rows), size))
    found = [
        group[-1]._replace(
            low_ns=group[0].low_ns,
            count=sum(row.count for row in group),
            share=sum(row.share for row in group),
        )
        for group in groups
    ]
    return [row._replace(density=row.count / octaves(row)) for row in found]


def octaves(row: Row) -> float:
    """Width of a bucket. The last one ends at the longest duration, which may be
    its lower bound."""
    low_ns = max(row.low_ns, LEAST_NS)
    return log2(max(row.high_ns, low_ns + 1) / low_ns)


APART, NOTABLE = threshold("calls.neighbours"), threshold("calls.odd-sizes")


class OddSizes(namedtuple("OddSizes", "call sizes calls line_ns excess_ns")):
    """The sizes of a call that are no powers of two, on all communicators. line_ns: what their
    calls would take on the line; excess_ns: what they take beyond it, negative: less."""

    @property
    def share(self) -> float:
        return self.excess_ns / self.line_ns


def odd_sizes(rows: Sequence[Row]) -> list[OddSizes]:
    """Calls with the most time first, as far as medians show that they differ from the line."""
    found = gathered((row.call, (row, usual_ns)) for row, usual_ns in _with_line(best_timed(rows)))
    answers = [
        OddSizes(
            call,
            len({row.bytes for row, _ in own}),
            sum(row.count for row, _ in own),
            sum(row.count * usual_ns for row, usual_ns in own),
            sum(row.count * (row.p50_ns - usual_ns) for row, usual_ns in own),
        )
        for call, own in found.items()
    ]
    return sorted(
        (each for each in answers if abs(each.share) >= NOTABLE), key=lambda each: -each.line_ns
    )


def _with_line(rows: Sequence[Row]) -> Iterator[tuple[Row, float]]:
    """Sizes that are no powers of two, with their median on the line; all of 20 calls or more."""
    curves = gathered(
        ((row.call, row.identity, row.memory_kind, row.measure, row.rank), row)
        for row in rows
        if row.bytes_low and row.bytes_low == row.bytes_high and row.p95_ns is not None
    )
    for curve in curves.values():
        powers = sorted((row for row in curve if row.power_of_two), key=lambda row: row.bytes_low)
        sizes = [row.bytes_low for row in powers]
        for row in curve:
            place = bisect(sizes, row.bytes_low)
            if not row.power_of_two and 0 < place < len(powers):
                below, above = powers[place - 1], powers[place]
                if above.bytes_low <= APART * below.bytes_low:
                    near = ((each.bytes_low, each.p50_ns) for each in (below, above))
                    yield row, line_ns(row.bytes_low, *near)
