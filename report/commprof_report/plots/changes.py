"""Figures and rows of a comparison in the page: the value of each run as a mark, side by side, and
the interval of the change.

The scale of values is logarithmic and each measure's own; that of changes is one for all measures
of a list. Differences that do not matter take the middle of it, and larger ones are drawn closer
together the larger they are (the inverse hyperbolic sine of the logarithm).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import asinh, log
from typing import NamedTuple

from ..base import units
from ..display import page

WIDTH, NAMED, BEGIN, END, CHANGE_BEGIN, CHANGE_END = 760, 112, 136, 420, 466, 744
TOP, HEIGHT, FOOT = 26, 20, 18
NEAREST_TICKS = 46
# changes, from none outwards
TICKS = (
    0, 0.01, -0.01, 0.02, -0.02, 0.05, -0.05, 0.1, -0.1, 0.2, -0.2, 0.5, -0.5, 1, 4, -0.8, 9, -0.9,
    99, -0.99, 999, -0.999,
)
MOST_NAME, MOST_SIDE = 88, 15


class Values(NamedTuple):
    """Values of the runs of a side, with their names. style: number of the side's mark and
    colour."""

    side: str
    style: int
    values_ns: Sequence[float | None]
    runs: Sequence[str]


class Change(NamedTuple):
    """Change of a side against the reference: ratio - 1. is_found: beyond chance."""

    style: int
    change: float
    low: float | None
    high: float | None
    is_found: bool
    text: str


class Measure(NamedTuple):
    """changes: of the sides but the first; those that are not known are absent."""

    name: str
    sides: Sequence[Values]
    changes: Sequence[Change]


def drawings(measures: Sequence[Measure], min_effect: float) -> str:
    """An SVG for each measure, one below the other."""
    place = _scale_of_changes(measures, min_effect)
    return "".join(_drawing(measure, place, min_effect) for measure in measures)


def _scale_of_changes(measures: Sequence[Measure], min_effect: float) -> Callable[[float], float]:
    changes = [change for measure in measures for change in measure.changes]
    known = [
        value for each in changes for value in (each.change, each.low, each.high)
        if value is not None
    ]
    farthest = max(
        [2 * _bent(min_effect, min_effect), *(abs(_bent(value, min_effect)) for value in known)]
    )
    middle, half = (CHANGE_BEGIN + CHANGE_END) / 2, (CHANGE_END - CHANGE_BEGIN) / 2
    return lambda change: middle + half * _bent(change, min_effect) / farthest


def _bent(change: float, min_effect: float) -> float:
    return asinh(log(1 + change) / log(1 + min_effect))


def _drawing(measure: Measure, place: Callable[[float], float], min_effect: float) -> str:
    bottom = TOP + HEIGHT * len(measure.sides)
    said = "; ".join(change.text for change in measure.changes)
    parts = [page.label(0, 14, units.shortened(measure.name, MOST_NAME), class_="name")]
    if len(measure.changes) == 1:
        parts.append(page.label(CHANGE_END, 14, said, text_anchor="end", class_="name"))
    parts += _values(measure.sides, bottom)
    parts += _changes(measure, place, min_effect, bottom)
    described = f"{measure.name}: {said}" if said else measure.name
    return page.element(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {bottom + FOOT}", class_="measure", role="img",
        aria_label=described,
    )


def _values(sides: Sequence[Values], bottom: float) -> list[str]:
    known = sorted(value for side in sides for value in side.values_ns if value is not None)
    parts = []
    for row, side in enumerate(sides):
        y = TOP + HEIGHT * (row + 0.5)
        parts.append(
            page.label(NAMED, y + 4, units.shortened(side.side, MOST_SIDE), text_anchor="end")
        )
        parts += [
            page.rule(BEGIN, y, END, y, "grid"), page.mark(side.style, NAMED + 11, y, "filled"),
        ]
        for value, run in zip(side.values_ns, side.runs):
            if value is not None:
                said = f"{side.side}: {units.duration(value)} ({run})"
                parts.append(
                    page.mark(side.style, _between(value, known[0], known[-1]), y, "run", said)
                )
    if known:
        parts.append(page.label(BEGIN, bottom + 13, units.duration(known[0]), class_="tick"))
        if known[-1] > known[0]:
            parts.append(
                page.label(
                    END, bottom + 13, units.duration(known[-1]), text_anchor="end", class_="tick"
                )
            )
    return parts


def _between(value: float, least: float, most: float) -> float:
    if least == most:
        return (BEGIN + END) / 2
    share = (
        log(value / least) / log(most / least) if least > 0 else (value - least) / (most - least)
    )
    return BEGIN + 6 + share * (END - BEGIN - 12)


def _changes(
    measure: Measure, place: Callable[[float], float], min_effect: float, bottom: float
) -> list[str]:
    if not measure.changes:
        return []
    low, high = place(1 / (1 + min_effect) - 1), place(min_effect)
    parts = [
        page.element("rect", x=low, y=TOP, width=high - low, height=bottom - TOP, class_="same")
    ]
    for tick in _readable(place):
        parts.append(page.rule(place(tick), TOP, place(tick), bottom, "grid" if tick else "zero"))
        parts.append(
            page.label(
                place(tick), bottom + 13, _tick_text(tick), text_anchor="middle", class_="tick"
            )
        )
    rows = {side.style: row for row, side in enumerate(measure.sides)}
    for change in measure.changes:
        y = TOP + HEIGHT * (rows[change.style] + 0.5)
        if change.low is not None and change.high is not None:
            parts.append(
                page.rule(
                    place(change.low), y, place(change.high), y,
                    f"interval side-{change.style % page.STYLES}",
                )
            )
        parts.append(
            page.mark(
                change.style, place(change.change), y, "filled" if change.is_found else "hollow",
                change.text,
            )
        )
    return parts


def _readable(place: Callable[[float], float]) -> list[float]:
    """Ticks within the scale, the first ones first, as many as can be read."""
    chosen: list[float] = []
    for tick in TICKS:
        if CHANGE_BEGIN <= place(tick) <= CHANGE_END and all(
            abs(place(tick) - place(other)) >= NEAREST_TICKS for other in chosen
        ):
            chosen.append(tick)
    return chosen


def _tick_text(change: float) -> str:
    return "same" if not change else f"{100 * change:+.3g} %" if change < 1 else f"x{1 + change:g}"
