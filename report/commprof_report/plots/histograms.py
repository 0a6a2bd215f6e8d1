"""Histograms that are overlaid, as data for the page's own drawing (display/histograms.js)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..base import units
from ..calls.histogram import LEAST_NS
from ..display.colours import variable


class Curve(NamedTuple):
    """Calls by the bounds of their durations, in order. note: what the legend says of them.
    colour: of a call."""

    name: str
    note: str
    buckets: Sequence[tuple[tuple[int, int], int]]
    colour: str | None = None


class Choice(NamedTuple):
    """Options of a list, each by its title with the curves that it shows."""

    label: str
    options: Sequence[tuple[str, Sequence[Curve]]]


def data(choices: Sequence[Choice]) -> dict[str, object]:
    """Curves are numbered in `curves`; a bucket is [from, to, calls] in nanoseconds, one after the
    other."""
    numbers: dict[int, int] = {}
    curves: list[dict[str, object]] = []

    def number(curve: Curve) -> int:
        if id(curve) not in numbers:
            numbers[id(curve)] = len(curves)
            buckets = [
                number for (low_ns, high_ns), count in curve.buckets
                for number in _bucket(low_ns, high_ns, count)
            ]
            curves.append(
                {
                    "name": units.visible(curve.name),
                    "note": units.visible(curve.note),
                    "buckets": buckets,
                    "colour": curve.colour and variable(curve.colour),
                }
            )
        return numbers[id(curve)]

    shown = [
        {
            "label": choice.label,
            "options": [
                [units.visible(title), list(map(number, own))] for title, own in choice.options
            ],
        }
        for choice in choices
    ]
    return {"choices": shown, "curves": curves}


def _bucket(low_ns: int, high_ns: int, count: int) -> Iterable[int]:
    low_ns = max(low_ns, LEAST_NS)
    return low_ns, max(high_ns, low_ns + 1), count
