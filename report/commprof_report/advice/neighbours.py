"""Two sizes of a call, next to each other: in words, and at unlike places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from ..base import units
from . import basis
from .basis import PADDED
from .curves import PLACES, Curve, Point
from .findings import Unknown, on
from .inputs import Inputs


def quartiles_text(point: Point) -> str:
    """2,000 calls of 65 KiB take 900 us in the median (half of them 880 us to 950 us)"""
    low = units.duration(point.split.transfer_p25_ns)
    high = units.duration(point.split.transfer_p75_ns)
    calls = f"{units.counted(point.count, 'call')} of {units.size(point.bytes)}"
    return (
        f"{calls} take {units.duration(point.p50_ns)} in the median (half of them {low} to {high})"
    )


def unknown_pairs(inputs: Inputs, is_found: Callable[[Point, Point], bool]) -> Iterator[Unknown]:
    """Sizes that look as the rule looks for, though they are at unlike places, or something is
    computed beside them."""
    for curve in inputs.curves:
        if not curve.is_split and curve.neighbours(PADDED):
            yield Unknown(
                f"how much of {curve.call} on {on(inputs, curve)} is waiting for other ranks is "
                "not known"
            )
        elif curve not in basis.comparable(inputs) and any(
            is_found(*pair) for pair in curve.neighbours(PADDED)
        ):
            yield Unknown(
                f"a background thread calls {curve.call}: how long that takes depends on what is "
                "computed meanwhile"
            )
    for below, above, curve in at_other_places(inputs):
        if is_found(below, above):
            there = next(place for place in PLACES if place != curve.place)
            yield Unknown(
                f"{curve.call} of {units.size(below.bytes)} is only seen {there}, and of "
                f"{units.size(above.bytes)} {curve.place}: which of both makes the difference is "
                "not known"
            )


def at_other_places(inputs: Inputs) -> Iterator[tuple[Point, Point, Curve]]:
    """Sizes next to each other, at most a factor of two apart, of which no place has both; the
    curve is that of the larger one."""
    comparable = basis.comparable(inputs)
    for curve, other in product(comparable, comparable):
        if curve.place == other.place or curve.key != other.key:
            continue
        here, there = curve.judged, other.judged
        sizes = sorted({*here, *there})
        for low, high in zip(sizes, sizes[1:]):
            is_apart = low not in here and high not in there
            if is_apart and high <= PADDED * low and there[low].is_of_ranks_of(here[high]):
                yield there[low], here[high], curve
