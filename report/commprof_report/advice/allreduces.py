"""Many Allreduces, in words: how many, of which sizes, and how sure a saving in them is."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import units
from ..base.thresholds import threshold, whole
from .curves import Point
from .findings import LIKELY, POSSIBLE, size_range
from .inputs import Inputs

TINY_BYTES = whole("advice.tiny")
MOST_OF_TIME = threshold("advice.likely")


def is_tiny(point: Point) -> bool:
    """An Allreduce of a value, not of a tensor, unless a framework's negotiation is known."""
    return point.bytes <= TINY_BYTES


def calls_text(points: Sequence[Point], ranks: int, inputs: Inputs) -> str:
    """16,100 calls a rank of 64 B to 288 KiB (161 a step, two thirds of them of at most 1 KiB)"""
    calls = sum(point.count for point in points) / ranks
    more = []
    if (per_step := inputs.per_step(calls)) and per_step >= 1:
        number = f"{per_step:.1f}" if per_step < 10 else units.count(round(per_step))
        more.append(f"{number} a step")
    if len(points) > 2:
        more.append(f"two thirds of them of at most {units.size(_two_thirds(points))}")
    sizes = size_range(points[0].bytes, points[-1].bytes)
    said = f"{units.count(round(calls))} calls a rank of {sizes}"
    return f"{said} ({', '.join(more)})" if more else said


def _two_thirds(points: Sequence[Point]) -> int:
    """The size up to which two thirds of the calls are."""
    left = 2 / 3 * sum(point.count for point in points)
    for point in points:
        left -= point.count
        if left <= 0:
            break
    return point.bytes


def certainty(ranks: int, points: Sequence[Point], total_ns: float) -> str:
    """Certainty of the saving: if most of the time is waiting for a late rank, or that of a few
    very long calls, other messages may wait as long."""
    least_ns = sum(point.least_total_ns for point in points) * ranks
    typical_ns = sum(point.count * point.p50_ns for point in points)
    return LIKELY if min(least_ns, typical_ns) >= MOST_OF_TIME * total_ns else POSSIBLE
