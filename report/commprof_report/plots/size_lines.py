"""Lines: latency over message size, the median with its bands up to the 95th and 99th percentile,
broken at sizes of too few calls. One panel for each communicator or family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import nan

from ..base import Row, gathered, units
from ..display.colours import of_call
from .bars import time_axis

MOST_LINES, MOST_PANELS, ACROSS = 5, 6, 3
ALONE = (8.0, 4.5)
WIDTH, HEIGHT, LEGEND = 3.2, 3.0, 2.4  # of one of several panels
STYLES = ("-", "--", ":", "-.")  # of lines of one colour
BANDS = (("p95_ns", 0.22), ("p99_ns", 0.14))  # up to there, and how dark
EXPLAINED = "line: median\nbands: up to 95, 99 %\nhollow: below 20 calls"

Line = list[Row]  # by size


def figure_size(rows: Sequence[Row]) -> tuple[float, float]:
    count = len(panels_of(rows))
    return (
        ALONE if count < 2 else (WIDTH * min(count, ACROSS) + LEGEND, HEIGHT * -(-count // ACROSS))
    )


def draw(axes, rows: Sequence[Row]) -> None:
    """All panels have the same axes, and each call the same look in all of them."""
    panels = panels_of(rows)
    shown = [row for lines in panels.values() for line in lines.values() for row in line]
    looks: dict[str, tuple[str, str]] = {}
    for name in by_time((name_of(row), row) for row in shown):
        alike = sum(of_call(name) == colour for colour, _ in looks.values())
        looks[name] = of_call(name), STYLES[alike % len(STYLES)]
    figure, across = axes.figure, min(len(panels), ACROSS)
    axes.remove()
    grid = figure.subplots(
        -(-len(panels) // across), across, sharex=True, sharey=True, squeeze=False
    )
    for place, panel in enumerate(grid.flat):
        if place >= len(panels):
            panel.remove()
            continue
        title = [*panels][place]
        head = "" if len(panels) > 1 else "Latency by message size: "
        panel.set_title(f"{head}{units.shortened(title, 40)}", fontsize=9 if not head else None)
        for name, line in panels[title].items():
            draw_line(panel, line, *looks[name])
        if place % across == 0:
            panel.set_ylabel("duration of a call (logarithmic)")
        if place + across >= len(panels):  # none is below it
            panel.set_xlabel("message size (logarithmic)")
            panel.tick_params(labelbottom=True)
    first = grid[0, 0]
    first.set_yscale("log")
    first.set_xscale("log", base=2)
    time_axis(first.yaxis, is_log=True)
    size_axis(first.xaxis, [*map(place_of, shown)], 7 if across == 1 else 4)
    corner = grid[0, across - 1]
    for name, (colour, style) in looks.items():
        corner.plot([], [], style, color=colour, marker="o", markersize=4, label=name)
    corner.legend(
        title=EXPLAINED, title_fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )


def panels_of(rows: Sequence[Row]) -> dict[str, dict[str, Line]]:
    """By communicator and call: those with the most time, the largest first."""
    largest = by_time((units.visible(row.communicator), row) for row in rows)
    return {
        title: {
            name: sorted(line, key=place_of)
            for name, line in islice(
                by_time((name_of(row), row) for row in own).items(), MOST_LINES
            )
        }
        for title, own in islice(largest.items(), MOST_PANELS)
    }


def by_time(named: Iterable[tuple[str, Row]]) -> dict[str, list[Row]]:
    """The rows of each name; those with the most time first."""
    groups = gathered(named).items()
    return dict(sorted(groups, key=lambda group: -sum(row.total_ns for row in group[1])))


def draw_line(axes, line: Line, colour: str, style: str) -> None:
    """Points of too few calls for a percentile are hollow, and without a band."""
    places, medians = [*map(place_of, line)], [point.p50_ns for point in line]
    for key, alpha in BANDS:
        tops = [getattr(point, key) or point.p95_ns or nan for point in line]
        axes.fill_between(places, medians, tops, color=colour, alpha=alpha, linewidth=0)
    axes.plot(places, medians, style, color=colour, linewidth=1.6)
    for place, median, point in zip(places, medians, line):
        inside = "white" if point.p95_ns is None else colour
        axes.plot(place, median, "o", color=colour, markerfacecolor=inside, markersize=4)


def size_axis(axis, sizes: Sequence[int], most: int) -> None:
    """Ticks at powers of two, about so many at most."""
    from matplotlib.ticker import NullLocator

    first, last = max(min(sizes), 1).bit_length() - 1, max(max(sizes), 1).bit_length()
    step = max(1, -(-(last - first) // most))
    axis.set_ticks([1 << power for power in range(first, last + 1, step)])
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda size, _: units.size(int(size)))


def with_message(rows: Sequence[Row]) -> list[Row]:
    """Rows that have a place on the axis of sizes."""
    return [row for row in rows if place_of(row)]


def name_of(row: Row) -> str:
    name = units.call_name(units.visible(row.call), row.memory_kind, row.measure)
    return name if row.rank is None else f"{name}, rank {row.rank}"


def place_of(row: Row) -> int:
    """Position of a size on the axis; a bin without upper bound stands at its lower."""
    return row.bytes if row.bytes is not None else row.bytes_low
