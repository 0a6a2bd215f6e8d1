"""Comparison: for each figure and row the interval of its change."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from ..display.colours import SIDES

TICKS = (1, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 5, 10, 100, 1000)  # and their inverses
MOST_TICKS = 8


class Interval(NamedTuple):
    """Ratios of a side to the reference; low and high are null if they are not known. is_found: a
    difference, beyond chance."""

    side: str
    name: str
    ratio: float
    low: float | None
    high: float | None
    is_found: bool


class Picture(NamedTuple):
    """refused: why there is no verdict; empty: there is one."""

    reference: str
    level: float
    min_effect: float
    intervals: Sequence[Interval]
    refused: str


def figure_size(picture: Picture) -> tuple[float, float]:
    rows = len({row.name for row in picture.intervals})
    return 7, 1.8 + 0.28 * rows + 0.05 * len(picture.intervals)


def draw(axes, picture: Picture) -> None:
    names = list(dict.fromkeys(row.name for row in picture.intervals))
    sides = list(dict.fromkeys(row.side for row in picture.intervals))
    axes.axvspan(
        1 / (1 + picture.min_effect), 1 + picture.min_effect, color="#DDDDDD", linewidth=0, zorder=0
    )
    axes.axvline(1, color="#555555", linewidth=1)
    for row in picture.intervals:
        place = sides.index(row.side)
        y, colour = (
            names.index(row.name) + (place - (len(sides) - 1) / 2) * 0.6 / len(sides),
            SIDES[(place + 1) % len(SIDES)],
        )
        if row.low is not None:
            axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2, solid_capstyle="butt")
        axes.plot(
            [row.ratio], [y], "o", color=colour, markersize=6,
            markerfacecolor=colour if row.is_found else "white",
        )
    for place, side in enumerate(sides):
        axes.plot([], [], "o-", color=SIDES[(place + 1) % len(SIDES)], label=side)
    axes.set_xscale("log")
    label_ratios(axes)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(
        f"change against the value of {picture.reference}, beside each name\n(*: the verdict; "
        "filled: beyond chance; grey: too small to matter)"
    )
    refused = f"\nno verdict ({picture.refused})" if picture.refused else ""
    axes.set_title(f"Changes with their {100 * picture.level:.3g} % intervals{refused}", pad=26)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, borderaxespad=0.2, borderpad=0)


def label_ratios(axes) -> None:
    """Ticks that read as changes, from no change outwards, as many as can be read."""
    from matplotlib.ticker import NullLocator

    low, high = (log(ratio) for ratio in axes.get_xlim())
    chosen: list[float] = []
    for tick in sorted(
        (tick for ratio in TICKS for tick in {ratio, 1 / ratio}), key=lambda tick: abs(log(tick))
    ):
        if low <= log(tick) <= high and all(
            abs(log(tick / other)) > (high - low) / MOST_TICKS for other in chosen
        ):
            chosen.append(tick)
    axes.set_xticks(sorted(chosen), [ratio_text(tick) for tick in sorted(chosen)])
    axes.xaxis.set_minor_locator(NullLocator())


def ratio_text(ratio: float) -> str:
    return (
        "same" if ratio == 1 else f"{100 * (ratio - 1):+.2g} %" if 0.5 <= ratio < 2
        else f"x{ratio:g}"
    )
