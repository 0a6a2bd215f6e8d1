"""Advice that is given, and how sure it is."""

from __future__ import annotations

from types import SimpleNamespace

from commprof_report.advice.inputs import Curve, Point, is_mostly_beside_main, is_notable_time
from commprof_report.advice.rules import is_blocked, is_long, is_many, is_much_waiting, is_tiny

WHOLE, KIB = 1_000_000, 1_024


def point(size: int, ns: float = 1_000.0, observations: int = 100) -> Point:
    """All calls of a size take this long."""
    calls = 100
    return Point(size, size, calls, observations, calls * ns, ns, calls, 0.0)


def curve(*points: Point) -> Curve:
    return Curve("MPI_Allreduce", ("world",), 4, list(points))


def least_large_enough(ratio: float) -> str:
    """Two sizes; the larger one costs 1 ns a byte."""
    small, large = point(KIB, ratio * KIB), point(4 * KIB, 4 * KIB)
    knee = curve(small, large).knee
    return "large enough" if knee and knee.bytes == KIB else "too small"


def either(yes: str, no: str, is_so: bool) -> str:
    return yes if is_so else no


EXAMPLES = {
    "advice.notable": lambda share: either(
        "a finding", "nothing", is_notable_time(share * WHOLE, SimpleNamespace(counted_ns=WHOLE))
    ),
    "advice.many": lambda calls: either(
        "a finding", "nothing", is_many(calls, SimpleNamespace(per_step=lambda _calls: None))
    ),
    "advice.background": lambda share: either("possible", "sure", is_mostly_beside_main([share])),
    "advice.observations": lambda number: either(
        "judged",
        "not judged",
        bool(curve(point(KIB, observations=number), point(4 * KIB, observations=number)).knee),
    ),
    "advice.knee": least_large_enough,
    "advice.tiny": lambda size: either("a value", "a tensor", is_tiny(point(size))),
    "advice.waiting": lambda share: either(
        "much waiting", "little waiting", is_much_waiting(round(share * WHOLE), WHOLE)
    ),
    "advice.cycle": lambda share: either("long", "short", is_long(share * WHOLE, WHOLE)),
    "advice.overlap": lambda share: either(
        "overlaps with nothing", "overlaps", is_blocked(round((1 - share) * WHOLE), WHOLE)
    ),
}
