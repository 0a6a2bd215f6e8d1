"""Bars: the rows of a table, each as stacked parts, in panels beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..base import units
from ..base.field import Row
from ..display import colours
from .axis import time_axis, time_text

# of parts that are neither waiting nor outside MPI
KINDS = (*colours.SIDES, colours.OTHER_CALLS)
KERNELS = (("computing", colours.COMPUTING), ("communicating", colours.COMMUNICATING))
WAITING, IN_MPI, OUTSIDE = colours.WAITING, colours.TRANSFER, colours.OUTSIDE
MOST_ROWS, MOST_CALLS = 24, 12
LONGEST_NAME = 48


class Part(NamedTuple):
    """values: of each row. colour: of all of them, or of each."""

    name: str
    colour: str | Sequence[str]
    values: Sequence[float]


def stacked(parts: Sequence[Part]) -> Iterator[tuple[Part, list[float], list[float]]]:
    """The parts that have any values, with where they begin and end."""
    ends = [0.0] * len(parts[0].values)
    for part in (part for part in parts if any(part.values)):
        begins, ends = ends, [end + value for end, value in zip(ends, part.values)]
        yield part, begins, ends


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


def of_calls(rows: Sequence[Row]) -> Picture | None:
    """The calls with the most time."""
    shown = sorted(rows, key=lambda row: -row.total_ns)[:MOST_CALLS]
    look = [colours.of_call(row.call) for row in shown]
    part = Part("time", look, [row.total_ns for row in shown])
    panel = Panel("time over all ranks", "time", [part], [call_text(row) for row in shown])
    return Picture("Time by call", [row.call for row in shown], [panel]) if shown else None


def call_text(row: Row) -> str:
    share = "" if row.share_of_wall is None else f", {units.share(row.share_of_wall)} of wall"
    return time_text(row.total_ns) + share


def of_kernels(rows: Sequence[Row]) -> Picture | None:
    """The kernels with the most time, computing and communicating."""
    shown = sorted(rows, key=lambda row: -row.total_ns)[:MOST_CALLS]
    parts = [
        Part(name, colour, [row.total_ns * (row.is_communication == kind) for row in shown])
        for kind, (name, colour) in enumerate(KERNELS)
    ]
    notes = [f"{time_text(row.total_ns)}, {units.share(row.share)}" for row in shown]
    panel = Panel("time over all GPUs", "time", parts, notes)
    return Picture("Time by kernel", [row.kernel for row in shown], [panel]) if shown else None


def figure_size(picture: Picture) -> tuple[float, float]:
    rows = min(max(len(picture.names), 2), MOST_ROWS)
    return 3.5 + 4.5 * len(picture.panels), 1.9 + 0.34 * rows


def draw(axes, picture: Picture) -> None:
    """The first rows, where there are many."""
    figure, rows, grid = axes.figure, min(len(picture.names), MOST_ROWS), [axes]
    if len(picture.panels) > 1:
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
    shown = [part._replace(values=part.values[:rows]) for part in panel.parts]
    for part, begins, ends in stacked(shown):
        axes.barh(
            range(rows), part.values, left=begins, height=0.72, color=part.colour, label=part.name,
        )
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
