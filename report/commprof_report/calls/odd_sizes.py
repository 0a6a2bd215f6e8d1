"""The cost of sizes that are no powers of two: the finding of hvprof's paper, as a number.

    duration    o           x: a size between two powers of two
    (log)       |   x    .o    o: powers of two
                | .  '  '      the line through the neighbours is straight on logarithmic axes
                o'
                +------------- size (log)

Compared are medians, which single late arrivals do not change.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from math import exp, log
from typing import NamedTuple

from ..base.thresholds import threshold
from .views import Row, best_timed

APART, NOTABLE = threshold("calls.neighbours"), threshold("calls.odd-sizes")


class OddSizes(NamedTuple):
    """The sizes of a call that are no powers of two, on all communicators. line_ns: what their
    calls would take on the line; excess_ns: what they take beyond it, negative: less."""

    call: str
    library: str
    sizes: int
    calls: int
    line_ns: float
    excess_ns: float

    @property
    def share(self) -> float:
        return self.excess_ns / self.line_ns


def odd_sizes(rows: Sequence[Row]) -> list[OddSizes]:
    """Calls with the most time first, as far as medians show that they differ from the line."""
    found: dict[str, list[tuple[Row, float]]] = {}
    for row, line_ns in _with_line(best_timed(rows)):
        found.setdefault(row.call, []).append((row, line_ns))
    answers = [
        OddSizes(
            call, own[0][0].library, len({row.bytes for row, _ in own}),
            sum(row.count for row, _ in own), sum(row.count * line_ns for row, line_ns in own),
            sum(row.count * (row.p50_ns - line_ns) for row, line_ns in own),
        )
        for call, own in found.items()
    ]
    notable = (each for each in answers if abs(each.share) >= NOTABLE)
    return sorted(notable, key=lambda each: -each.line_ns)


def _with_line(rows: Sequence[Row]) -> Iterator[tuple[Row, float]]:
    """Sizes that are no powers of two, with their median on the line; all of 20 calls or more."""
    curves: dict[tuple, list[Row]] = {}
    for row in rows:
        if row.bytes_low and row.bytes_low == row.bytes_high and row.p95_ns is not None:
            key = (row.call, row.identity, row.memory_kind, row.measure, row.rank)
            curves.setdefault(key, []).append(row)
    for curve in curves.values():
        powers = sorted((row for row in curve if row.power_of_two), key=lambda row: row.bytes_low)
        sizes = [row.bytes_low for row in powers]
        for row in curve:
            place = bisect(sizes, row.bytes_low)
            if not row.power_of_two and 0 < place < len(powers):
                below, above = powers[place - 1], powers[place]
                if above.bytes_low <= APART * below.bytes_low:
                    yield row, _between(below, above, row.bytes_low)


def _between(below: Row, above: Row, size: int) -> float:
    part = log(size / below.bytes_low) / log(above.bytes_low / below.bytes_low)
    return exp((1 - part) * log(below.p50_ns) + part * log(above.p50_ns))
