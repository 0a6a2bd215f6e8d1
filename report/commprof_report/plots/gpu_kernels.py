"""Bars: the kernels with the most time, computing and communicating."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import units
from ..base.field import Row
from ..display.colours import COMMUNICATING, COMPUTING
from .axis import time_axis, time_text

MOST_KERNELS = 12
CLASSES = (("computing", 0, COMPUTING), ("communicating", 1, COMMUNICATING))
NAME_WIDTH = 48


def figure_size(rows: Sequence[Row]) -> tuple[float, float]:
    return 9, 1.6 + 0.34 * min(max(len(rows), 2), MOST_KERNELS)


def draw(axes, rows: Sequence[Row]) -> None:
    shown = sorted(rows, key=lambda row: row.total_ns)[-MOST_KERNELS:]
    for label, is_communication, colour in CLASSES:
        bars = [
            (place, row.total_ns) for place, row in enumerate(shown)
            if row.is_communication == is_communication
        ]
        if bars:
            axes.barh(*zip(*bars), color=colour, label=label, height=0.72)
    for place, row in enumerate(shown):
        axes.annotate(
            bar_text(row), (row.total_ns, place), (4, 0), textcoords="offset points", va="center",
            fontsize=9,
        )
    axes.set_yticks(
        range(len(shown)), [units.visible(units.shortened(row.kernel, NAME_WIDTH)) for row in shown]
    )
    axes.set_xlabel("time over all GPUs")
    axes.set_xlim(0, 1.22 * max((row.total_ns for row in shown), default=1) or 1)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_title("Time by kernel")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right")
    time_axis(axes.xaxis)


def bar_text(row: Row) -> str:
    return f"{time_text(row.total_ns)}, {units.share(row.share)}"
