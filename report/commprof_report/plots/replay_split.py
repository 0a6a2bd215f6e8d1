"""Replays of one kit: the mean time of a call in each kind of replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..base import units
from ..display.colours import SIDES, TRANSFER
from .axis import time_axis

COLOURS = (*SIDES, TRANSFER)
MARKS = "o^sDv"
LONGEST_NAME = 48


class Picture(NamedTuple):
    """names: of the rows, from the top. times_ns: of each row, by kind of replay."""

    names: Sequence[str]
    times_ns: Mapping[str, Sequence[float | None]]


def figure_size(picture: Picture) -> tuple[float, float]:
    return 9.0, 1.7 + 0.34 * max(2, len(picture.names))


def draw(axes, picture: Picture) -> None:
    rows = range(len(picture.names))
    for row in rows:
        known = [time_ns for times in picture.times_ns.values() if (time_ns := times[row])]
        axes.plot([min(known), max(known)], [row, row], color="#888888", linewidth=1, zorder=1)
    for (kind, times), colour, mark in zip(picture.times_ns.items(), COLOURS, MARKS):
        known_rows = [row for row in rows if times[row]]
        axes.plot(
            [times[row] for row in known_rows], known_rows, mark, color=colour, label=kind,
        )
    axes.set_xscale("log")
    time_axis(axes.xaxis, is_log=True)
    axes.set_yticks(
        rows, [units.shortened(units.visible(name), LONGEST_NAME) for name in picture.names]
    )
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("mean time of a call")
    axes.set_title("The same calls, made again in several ways")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
