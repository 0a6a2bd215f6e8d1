"""Lines: latency over message size, the median with its band up to the 95th and 99th percentile,
broken at sizes of too few calls. One panel for each communicator or family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice

from ..base import units
from ..base.gather import gathered
from ..base.present import present
from ..calls.views import Row
from ..display.colours import of_call
from .axis import size_axis, time_axis

MOST_LINES, MOST_PANELS, ACROSS = 5, 6, 3
ALONE = (8.0, 4.5)
WIDTH, HEIGHT, LEGEND = 3.2, 3.0, 2.4  # of one of several panels
TITLE = "Latency by message size"

STYLES = ("-", "--", ":", "-.")
GREY = "#777777"
HOLLOW = {"marker": "o", "markerfacecolor": "white", "markersize": 4, "linewidth": 0}
# name, up to what, and how dark: over several sizes, at one, in the legend (as they overlap)
BANDS = (("up to 99 %", "p99_ns", 0.14, 0.35, 0.14), ("up to 95 %", "p95_ns", 0.22, 0.6, 0.3))

Line = list[Row]  # by size
Look = tuple[str, str]  # colour, style


def figure_size(rows: Sequence[Row]) -> tuple[float, float]:
    count = len(panels_of(rows))
    return (
        ALONE if count < 2 else (WIDTH * min(count, ACROSS) + LEGEND, HEIGHT * -(-count // ACROSS))
    )


def draw(axes, rows: Sequence[Row]) -> None:
    """All panels have the same axes, and each call the same look in all of them."""
    panels = panels_of(rows)
    looks = looks_of(panels)
    figure, across = axes.figure, min(len(panels), ACROSS)
    axes.remove()
    grid = figure.subplots(
        -(-len(panels) // across), across, sharex=True, sharey=True, squeeze=False
    )
    for place, panel in enumerate(grid.flat):
        if place >= len(panels):
            panel.remove()
            continue
        title = list(panels)[place]
        shown = units.shortened(title, 40)
        panel.set_title(shown, fontsize=9) if len(panels) > 1 else panel.set_title(
            f"{TITLE}: {shown}"
        )
        for name, line in panels[title].items():
            draw_line(panel, line, looks[name])
        if place % across == 0:
            panel.set_ylabel("duration of a call")
        if place + across >= len(panels):  # none is below it
            panel.set_xlabel("message size")
            panel.tick_params(labelbottom=True)
    first = grid[0, 0]
    first.set_yscale("log")
    first.set_xscale("log", base=2)
    time_axis(first.yaxis, is_log=True)
    rows = rows_of(panels)
    places = [*map(place_of, rows)]
    size_axis(first.xaxis, min(places), max(places), 7 if across == 1 else 4)
    legend(grid[0, across - 1], looks, bool(few_of(rows)))


def legend(axes, looks: Mapping[str, Look], has_few: bool) -> None:
    for name, (colour, style) in looks.items():
        axes.plot([], [], style, color=colour, marker="o", markersize=4, linewidth=1.6, label=name)
    axes.plot([], [], color=GREY, linewidth=1.6, label="median")
    if has_few:
        axes.plot([], [], color=GREY, **HOLLOW, label="below 20 calls")
    for name, *_, alpha in reversed(BANDS):
        axes.fill_between([], [], [], color=GREY, alpha=alpha, linewidth=0, label=name)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def panels_of(rows: Sequence[Row]) -> dict[str, dict[str, Line]]:
    """By communicator and call: those with the most time, the largest first."""
    largest = by_time((units.visible(row.communicator), row) for row in rows)
    return {name: lines_of(own) for name, own in islice(largest.items(), MOST_PANELS)}


def by_time(named: Iterable[tuple[str, Row]]) -> dict[str, list[Row]]:
    """The rows of each name; those with the most time first."""
    groups = gathered(named).items()
    return dict(sorted(groups, key=lambda group: -sum(row.total_ns for row in group[1])))


def rows_of(panels: Mapping[str, Mapping[str, Line]]) -> list[Row]:
    return [row for lines in panels.values() for line in lines.values() for row in line]


def lines_of(rows: Sequence[Row]) -> dict[str, Line]:
    largest = by_time((name_of(row), row) for row in rows)
    return {name: sorted(line, key=place_of) for name, line in islice(largest.items(), MOST_LINES)}


def looks_of(panels: Mapping[str, Mapping[str, Line]]) -> dict[str, Look]:
    """The call with the most time first; lines of one colour differ in their style."""
    looks: dict[str, Look] = {}
    for name in by_time((name_of(row), row) for row in rows_of(panels)):
        alike = sum(of_call(name) == colour for colour, _ in looks.values())
        looks[name] = of_call(name), STYLES[alike % len(STYLES)]
    return looks


def draw_line(axes, line: Line, look: Look) -> None:
    colour, style = look
    for points in bands_of(line):
        draw_band(axes, points, colour)
    axes.plot(
        [place_of(point) for point in line], [point.p50_ns for point in line], style,
        color=colour, marker="o", markersize=4, linewidth=1.6,
    )
    if few := few_of(line):
        places, medians = zip(*((place_of(point), point.p50_ns) for point in few))
        axes.plot(places, medians, color=colour, **HOLLOW)


def draw_band(axes, points: Line, colour: str) -> None:
    """A band needs two sizes; one gets whiskers."""
    places, medians = zip(*((place_of(point), point.p50_ns) for point in points))
    for _, key, alpha, alone, _ in BANDS:
        tops = [getattr(point, key) or present(point.p95_ns) for point in points]
        if len(points) == 1:
            axes.vlines(places, medians, tops, color=colour, alpha=alone, linewidth=5)
        else:
            axes.fill_between(places, medians, tops, color=colour, alpha=alpha, linewidth=0)


def bands_of(line: Line) -> list[Line]:
    """Neighbouring sizes that have a band: it is broken at sizes of too few calls."""
    runs = groupby(line, key=lambda point: point.p95_ns is not None)
    return [list(points) for has_band, points in runs if has_band]


def few_of(line: Line) -> Line:
    """Points of too few calls for a percentile: hollow."""
    return [point for point in line if point.p95_ns is None]


def with_message(rows: Sequence[Row]) -> list[Row]:
    """Rows that have a place on the axis of sizes."""
    return [row for row in rows if place_of(row)]


def name_of(row: Row) -> str:
    name = units.call_name(units.visible(row.call), row.memory_kind, row.measure)
    return name if row.rank is None else f"{name}, rank {row.rank}"


def place_of(row: Row) -> int:
    """Position of a size on the axis; a bin without upper bound stands at its lower."""
    return row.bytes if row.bytes is not None else row.bytes_low
