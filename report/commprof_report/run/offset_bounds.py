"""The difference of two clocks, from times at which upper or lower bounds of it are known.

While both clocks run at constant rates, their difference is a straight line. Between two knots it
is given by its values there, a point of a plane. Each bound is a half-plane, and the intersection
of all of them is a convex polygon. Its extent gives the range of the difference at the two knots;
in between, the difference lies between the lines that connect the extremes. So the bounds are exact
as long as rates are constant between knots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

# maximal drift of two clocks: 1e-4 for two crystals, and NTP may slew each by 5e-4
MOST_RATE = 1e-3
FAR_NS = 1e13  # more than clocks drift apart in a run
FIRST_SLACK_NS = 1_000  # by which contradictory bounds are relaxed; doubled until they agree

Polygon = list[tuple[float, float]]


class Bound(NamedTuple):
    """At time `at_ns` the difference of two clocks is at most `difference_ns` (is_upper) or at
    least that."""

    at_ns: int
    difference_ns: int
    is_upper: bool


class Interval(NamedTuple):
    low: float
    high: float


EVERYWHERE = Interval(-FAR_NS, FAR_NS)


def at_knots(bounds: Sequence[Bound], knots: Sequence[int]) -> list[Interval]:
    """The range of the difference at each knot; infinite if nothing bounds it. Needs at least one
    bound and two knots."""
    base_ns = bounds[0].difference_ns  # after subtracting it, floats are exact enough
    segments = _by_segment(bounds, knots, base_ns)
    lengths = [after - before for before, after in zip(knots, knots[1:])]
    left, right = [EVERYWHERE], []
    # forwards: each segment passes on the range at its end
    for cuts, length in zip(segments, lengths):
        left.append(_extent(cuts, length, left[-1], EVERYWHERE)[1])
    right.append(left[-1])
    for cuts, length, start in zip(segments[::-1], lengths[::-1], left[-2::-1]):  # and backwards
        right.append(_extent(cuts, length, start, right[-1])[0])
    return [_shifted(interval, base_ns) for interval in right[::-1]]


def _by_segment(
    bounds: Sequence[Bound], knots: Sequence[int], base_ns: int
) -> list[list[tuple[float, float, int]]]:
    """For each segment its half-planes (weight of its end, difference, 1 for upper bounds and -1
    for lower ones)."""
    segments: list[list[tuple[float, float, int]]] = [[] for _ in knots[1:]]
    segment = 0
    for at_ns, difference_ns, is_upper in sorted(bounds):
        while segment < len(segments) - 1 and at_ns > knots[segment + 1]:
            segment += 1
        weight = (at_ns - knots[segment]) / (knots[segment + 1] - knots[segment])
        segments[segment].append((weight, float(difference_ns - base_ns), 1 if is_upper else -1))
    return segments


def _extent(
    cuts: Sequence[tuple[float, float, int]], length: int, start: Interval, end: Interval
) -> tuple[Interval, Interval]:
    """The range of the difference at the start and at the end of a segment. Contradictory bounds
    are relaxed by as little as necessary, and the ranges grow by as much."""
    slack = 0.0
    while True:
        polygon = _polygon(cuts, length, start, end, slack)
        if polygon:
            at_start, at_end = zip(*polygon)
            return Interval(min(at_start) - slack, max(at_start) + slack), Interval(
                min(at_end) - slack, max(at_end) + slack
            )
        slack = 2 * slack or FIRST_SLACK_NS


def _polygon(
    cuts: Sequence[tuple[float, float, int]], length: int, start: Interval, end: Interval,
    slack: float,
) -> Polygon:
    low, high, drift = start.low - slack, start.high + slack, MOST_RATE * length
    polygon = [(low, low - drift), (high, high - drift), (high, high + drift), (low, low + drift)]
    for weight, difference, sign in (*cuts, (1.0, end.high, 1), (1.0, end.low, -1)):
        polygon = _cut(polygon, weight, difference + sign * slack, sign)
    return polygon


def _cut(polygon: Polygon, weight: float, difference: float, sign: int) -> Polygon:
    """The part of the polygon in which sign x ((1 - weight) x start + weight x end - difference) <=
    0."""
    beyond = [sign * ((1 - weight) * start + weight * end - difference) for start, end in polygon]
    if not polygon or max(beyond) <= 0:
        return polygon
    clipped: Polygon = []
    for here, point in enumerate(polygon):
        before = here - 1
        if (beyond[before] > 0) != (beyond[here] > 0):
            part = beyond[before] / (beyond[before] - beyond[here])
            start, end = (low + part * (high - low) for low, high in zip(polygon[before], point))
            clipped.append((start, end))
        if beyond[here] <= 0:
            clipped.append(point)
    return clipped


def _shifted(interval: Interval, base_ns: int) -> Interval:
    """Converts back to whole nanoseconds; a limit near FAR_NS means that there is no bound."""
    low = -math.inf if interval.low < -FAR_NS / 2 else base_ns + math.floor(interval.low)
    high = math.inf if interval.high > FAR_NS / 2 else base_ns + math.ceil(interval.high)
    return Interval(low, high)
