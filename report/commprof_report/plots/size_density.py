"""Heat maps: the durations of calls at each message size, with their percentiles as lines. One
panel for each call and communicator or family."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, sqrt
from typing import NamedTuple

from ..base import units
from ..calls.by_size import SizeRow
from ..calls.histogram import LEAST_NS, SizeDurationRow, octaves
from .axis import size_axis, time_axis
from .duration_histogram import MARKS
from .peer_heat_map import shades

MOST_PANELS, ACROSS = 6, 3
ALONE = (8.0, 4.5)
WIDTH, HEIGHT, BAR = 3.4, 3.2, 1.0  # of one of several panels; of the bar of colours
WIDEST = 1.41  # from the middle of a field to its end, as a factor: an octave in all
FEW = 300  # times the lowest shade: then powers of ten are ticks enough
TITLE = "Durations by message size"


class Panel(NamedTuple):
    """Durations of one call and communicator, by size."""

    title: str
    sizes: Sequence[SizeRow]
    buckets: Sequence[SizeDurationRow]


def panels_of(rows: Sequence[SizeRow], buckets: Sequence[SizeDurationRow]) -> list[Panel]:
    """Maps with the most time first. Sizes that were counted with others stand at the largest."""
    sizes: dict[tuple, list[SizeRow]] = {}
    for row in rows:
        if row.bytes:
            sizes.setdefault(key_of(row), []).append(row)
    own: dict[tuple, list[SizeDurationRow]] = {}
    for bucket in buckets:
        own.setdefault(key_of(bucket), []).append(bucket)
    largest = sorted(sizes, key=lambda key: -sum(row.total_ns for row in sizes[key]))[:MOST_PANELS]
    is_one = len({row.communicator for row in rows}) == 1
    return [
        Panel(
            title_of(sizes[key][0], is_one), sorted(sizes[key], key=lambda row: row.bytes or 0),
            own.get(key, []),
        )
        for key in largest
    ]


def key_of(row: SizeRow | SizeDurationRow) -> tuple:
    return row.call, row.measure, row.memory_kind, row.communicator


def title_of(row: SizeRow, is_one_communicator: bool) -> str:
    name = units.call_name(row.call, row.memory_kind, row.measure)
    place = "" if is_one_communicator else f", {row.communicator}"
    return units.shortened(units.visible(name + place), 36)


def figure_size(panels: Sequence[Panel]) -> tuple[float, float]:
    count = len(panels)
    return (
        ALONE if count == 1 else (WIDTH * min(count, ACROSS) + BAR, HEIGHT * -(-count // ACROSS))
    )


def draw(axes, panels: Sequence[Panel]) -> None:
    """All panels have the same axes and the same shades."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, across = axes.figure, min(len(panels), ACROSS)
    axes.remove()
    grid = figure.subplots(
        -(-len(panels) // across), across, sharex=True, sharey=True, squeeze=False
    )
    buckets = [bucket for panel in panels for bucket in panel.buckets]
    densities = [density(bucket) for bucket in buckets]
    norm = LogNorm(min(densities), max(max(densities), 2 * min(densities)))
    for place, (axes, panel) in enumerate(zip(grid.flat, panels)):
        drawn = draw_fields(axes, panel, norm)
        draw_lines(axes, panel)
        title, size = (f"{TITLE}: {panel.title}", 11) if len(panels) == 1 else (panel.title, 9)
        axes.set_title(title, fontsize=size, pad=26 if place < across else 8)
    for place, axes in enumerate(grid.flat):
        if place >= len(panels):
            axes.remove()
        elif place % across == 0:
            axes.set_ylabel("duration of a call")
        if place < len(panels) <= place + across:  # none is below it
            axes.set_xlabel("message size")
            axes.tick_params(labelbottom=True)
    first = grid[0, 0]
    first.set_xscale("log", base=2)
    first.set_yscale("log")
    sizes = [row.bytes or 0 for panel in panels for row in panel.sizes]
    low_ns = max(min(bucket.low_ns for bucket in buckets), LEAST_NS)
    first.set_xlim(min(sizes) / 2, max(sizes) * 2)
    first.set_ylim(low_ns / 1.3, max(bucket.high_ns for bucket in buckets) * 1.3)
    size_axis(first.xaxis, min(sizes), max(sizes), 7 if across == 1 else 4)
    time_axis(first.yaxis, is_log=True)
    bar = figure.colorbar(
        drawn, ax=list(figure.axes), label="calls per octave of the duration", pad=0.01,
        ticks=LogLocator(10, subs=(1, 2, 5) if norm.vmax < FEW * norm.vmin else (1,)),
        format=lambda calls, _position: f"{calls:,.0f}",
    )
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.outline.set_visible(False)
    first.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2, borderpad=0)


def draw_fields(axes, panel: Panel, norm):
    """A field for each size and bucket of durations."""
    from matplotlib.collections import PolyCollection

    ends = ends_of(sorted({bucket.bytes for bucket in panel.buckets}))
    corners, densities = [], []
    for bucket in panel.buckets:
        (left, right), low = ends[bucket.bytes], max(bucket.low_ns, LEAST_NS)
        high = max(bucket.high_ns, low + 1)
        corners.append([(left, low), (right, low), (right, high), (left, high)])
        densities.append(density(bucket))
    fields = PolyCollection(
        corners, array=densities, cmap=shades(), norm=norm, linewidth=0, rasterized=True
    )
    return axes.add_collection(fields)


def ends_of(sizes: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Bounds of the fields of a size: half of the way to its neighbours on the logarithmic axis,
    but at most half an octave."""
    below, above = [0, *sizes[:-1]], [*sizes[1:], 0]
    return {
        size: (
            max(sqrt(size * low), size / WIDEST),
            min(sqrt(size * high), size * WIDEST) if high else size * WIDEST,
        )
        for low, size, high in zip(below, sizes, above)
    }


def draw_lines(axes, panel: Panel) -> None:
    """Percentiles, broken where there are too few calls for them."""
    from matplotlib.patheffects import withStroke

    places = [row.bytes for row in panel.sizes]
    for (_, name, _, style), key in zip(MARKS, ("p50_ns", "p95_ns", "p99_ns")):
        values = [getattr(row, key) for row in panel.sizes]
        axes.plot(
            places, [nan if value is None else value for value in values], linestyle=style,
            marker="o", markersize=2.5, color="#333333", linewidth=1.2, label=name,
            path_effects=[withStroke(linewidth=2.6, foreground="white")],
        )


def density(bucket: SizeDurationRow) -> float:
    """Calls per octave of the duration, as in a histogram."""
    return bucket.count / octaves(bucket)
