"""Bars: where the time inside MPI goes, call by call."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import units
from ..calls.by_call import CallRow
from ..display.colours import of_call
from .axis import time_axis, time_text

MOST_CALLS = 12


def figure_size(rows: Sequence[CallRow]) -> tuple[float, float]:
    return 8, 1.6 + 0.34 * min(max(len(rows), 2), MOST_CALLS)


def draw(axes, rows: Sequence[CallRow]) -> None:
    shown = sorted(rows, key=lambda row: row.total_ns)[-MOST_CALLS:]
    times, colours = [row.total_ns for row in shown], [of_call(row.call) for row in shown]
    axes.barh(range(len(shown)), times, color=colours, height=0.72)
    for place, row in enumerate(shown):
        axes.annotate(
            bar_text(row), (row.total_ns, place), (4, 0), textcoords="offset points", va="center",
            fontsize=9,
        )
    axes.set_yticks(range(len(shown)), [units.visible(row.call) for row in shown])
    axes.set_xlabel("time over all ranks")
    axes.set_xlim(0, 1.22 * max((row.total_ns for row in shown), default=1) or 1)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_title("Time by call")
    time_axis(axes.xaxis)


def bar_text(row: CallRow) -> str:
    share = "" if row.share_of_wall is None else f", {units.share(row.share_of_wall)} of wall"
    return time_text(row.total_ns) + share
