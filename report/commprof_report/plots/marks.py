"""Marks on one axis, below each other: a change with its interval, or the mean times of one call in
several kinds of replay."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from ..base import units
from ..display.colours import SIDES, TRANSFER
from .axis import readable, time_axis

COLOURS = (*SIDES, TRANSFER)
SHAPES = "o^sDv"
LONGEST_NAME = 60  # of a row, for whoever makes it
TICKS = (1, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 5, 10, 100, 1000)  # and their inverses
MOST_TICKS = 8


class Mark(NamedTuple):
    """low and high: its interval, null if it is not known."""

    row: int  # from the top
    value: float
    low: float | None = None
    high: float | None = None
    is_filled: bool = True


class Picture(NamedTuple):
    """names: of the rows, from the top. series: by their names. near: the middle, in which changes
    are too small to matter; null: the axis has times, and the marks of a row are joined."""

    title: str
    axis: str
    names: Sequence[str]
    series: Sequence[tuple[str, Sequence[Mark]]]
    near: float | None = None


def figure_size(picture: Picture) -> tuple[float, float]:
    marks = sum(len(marks) for _, marks in picture.series)
    return 8.0, 1.8 + 0.28 * max(2, len(picture.names)) + 0.05 * marks


def draw(axes, picture: Picture) -> None:
    rows, several = range(len(picture.names)), len(picture.series)
    if picture.near is None:
        for row in rows:
            known = [
                mark.value for _, marks in picture.series for mark in marks if mark.row == row
            ]
            axes.plot([min(known), max(known)], [row, row], color="#888888", linewidth=1, zorder=1)
    else:
        least, most = 1 / (1 + picture.near), 1 + picture.near
        axes.axvspan(least, most, color="#DDDDDD", linewidth=0, zorder=0)
        axes.axvline(1, color="#555555", linewidth=1)
    for number, (name, marks) in enumerate(picture.series):
        # the colour of the first side is that of the reference
        colour = COLOURS[(number + (picture.near is not None)) % len(COLOURS)]
        beside = (number - (several - 1) / 2) * 0.6 / several if picture.near is not None else 0
        shape = SHAPES[number % len(SHAPES)]
        for mark in marks:
            y = mark.row + beside
            if mark.low is not None:
                axes.plot([mark.low, mark.high], [y, y], color=colour, linewidth=2)
            face = colour if mark.is_filled else "white"
            axes.plot([mark.value], [y], shape, color=colour, markersize=6, markerfacecolor=face)
        axes.plot([], [], shape, color=colour, label=name)
    axes.set_xscale("log")
    if picture.near is None:
        time_axis(axes.xaxis, is_log=True)
    else:
        label_ratios(axes)
    axes.set_yticks(rows, [units.visible(name) for name in picture.names])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(picture.axis)
    axes.set_title(picture.title)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def label_ratios(axes) -> None:
    """Ticks that read as changes."""
    from matplotlib.ticker import NullLocator

    low, high = (log(ratio) for ratio in axes.get_xlim())
    both = {tick for ratio in TICKS for tick in (ratio, 1 / ratio)}
    ticks = sorted(both, key=lambda tick: abs(log(tick)))
    chosen = sorted(readable(ticks, log, low, high, (high - low) / MOST_TICKS))
    axes.set_xticks(chosen, [ratio_text(tick) for tick in chosen])
    axes.xaxis.set_minor_locator(NullLocator())


def ratio_text(ratio: float) -> str:
    return (
        "same" if ratio == 1 else f"{100 * (ratio - 1):+.2g} %" if 0.5 <= ratio < 2
        else f"x{ratio:g}"
    )
