"""Bars: the rows of a table, each as stacked parts, in panels beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base import units
from ..display import colours
from .axis import time_axis, time_text

# of parts that are neither waiting nor outside MPI
KINDS = (*colours.SIDES, colours.OTHER_CALLS)
WAITING, IN_MPI, OUTSIDE = colours.WAITING, colours.TRANSFER, colours.OUTSIDE
MOST_ROWS = 24
LONGEST_NAME = 48


class Part(NamedTuple):
    """values: of each row."""

    name: str
    colour: str
    values: Sequence[float]


class Panel(NamedTuple):
    """unit: time, bytes or share. notes: at the ends of bars; where there are none, their sums."""

    head: str
    unit: str
    parts: Sequence[Part]
    notes: Sequence[str] = ()


class Picture(NamedTuple):
    """names: of the rows, from the top."""

    title: str
    names: Sequence[str]
    panels: Sequence[Panel]


def figure_size(picture: Picture) -> tuple[float, float]:
    rows = min(max(len(picture.names), 2), MOST_ROWS)
    return 3.5 + 4.5 * len(picture.panels), 1.9 + 0.34 * rows


def draw(axes, picture: Picture) -> None:
    """The first rows, where there are many."""
    figure, rows = axes.figure, min(len(picture.names), MOST_ROWS)
    axes.remove()
    grid = figure.subplots(1, len(picture.panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(grid, picture.panels):
        draw_panel(axes, panel, rows)
    names = [units.shortened(units.visible(name), LONGEST_NAME) for name in picture.names[:rows]]
    grid[0].set_yticks(range(rows), names)
    grid[0].set_ylim(rows - 0.4, -0.6)
    left = len(picture.names) - rows
    grid[0].set_title(picture.title + (f" ({left:,} more rows)" if left else ""))
    handles = {
        name: handle for axes in grid for handle, name in zip(*axes.get_legend_handles_labels())
    }
    if len(handles) > 1:
        grid[-1].legend(
            handles.values(), handles, loc="upper left", bbox_to_anchor=(1.0, 1.0),
        )


def draw_panel(axes, panel: Panel, rows: int) -> None:
    ends = [0.0] * rows
    for part in (part for part in panel.parts if any(part.values[:rows])):
        values = list(part.values[:rows])
        axes.barh(
            range(rows), values, left=ends, height=0.72, color=part.colour, label=part.name,
        )
        ends = [end + value for end, value in zip(ends, values)]
    show = {"time": time_text, "bytes": units.volume, "share": units.share}[panel.unit]
    for place, end in enumerate(ends):
        axes.annotate(
            panel.notes[place] if panel.notes else show(end), (end, place), (4, 0),
            textcoords="offset points", va="center", fontsize=9,
        )
    axes.set_xlim(0, (1.5 if panel.notes else 1.22) * max(ends, default=1) or 1)
    axes.set_xlabel(panel.head)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    label_values(axes.xaxis, panel.unit)


def label_values(axis, unit: str) -> None:
    from matplotlib.ticker import MaxNLocator

    if unit == "time":
        time_axis(axis)
        return
    axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    if unit == "share":
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
    axis.set_major_formatter(
        (lambda value, _position: f"{100 * value:g} %") if unit == "share"
        else lambda value, _position: units.volume(value)
    )
