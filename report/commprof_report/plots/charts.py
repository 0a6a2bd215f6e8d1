"""Pictures that are no bars. Lines: latency over message size, the median with its bands up to the
95th and 99th percentile, broken at sizes of too few calls, a panel for each communicator or family.
Histogram: the density of the durations of one call at one size. Map: who sends how much to whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from math import nan
from typing import Dict, NamedTuple

from ..base import Row, gathered, np, units
from ..base.summarize import of_buckets
from ..calls.by_size import LEAST_NS
from ..display.colours import of_call
from .bars import time_axis, time_text

MOST_LINES, MOST_PANELS, ACROSS = 5, 6, 3
WIDTH, HEIGHT, LEGEND = 3.2, 3.0, 2.4  # of one of several panels
STYLES = ("-", "--", ":", "-.")  # of lines of one colour
PERCENTILES = ((50, "median", 1, "-"), (95, "95 %", 20, "--"), (99, "99 %", 100, ":"))
MOST_FIELDS, TICKS = 512, 12  # of a map; larger jobs are drawn in blocks of ranks
Panels = Dict[str, Dict[str, "list[Row]"]]  # by communicator and call; a line is by size


class Lines(NamedTuple):
    panels: Panels

    @property
    def size(self) -> tuple[float, float]:
        count = len(self.panels)
        if count < 2:
            return 8.0, 4.5
        return WIDTH * min(count, ACROSS) + LEGEND, HEIGHT * -(-count // ACROSS)

    def draw(self, axes) -> None:
        """All panels have the same axes, and each call the same look in all of them."""
        shown = [row for lines in self.panels.values() for line in lines.values() for row in line]
        looks: dict[str, tuple[str, str]] = {}
        for name in by_time((name_of(row), row) for row in shown):
            alike = sum(of_call(name) == colour for colour, _ in looks.values())
            looks[name] = of_call(name), STYLES[alike % len(STYLES)]
        count, across = len(self.panels), min(len(self.panels), ACROSS)
        figure = axes.figure
        axes.remove()
        grid = figure.subplots(-(-count // across), across, sharex=True, sharey=True, squeeze=False)
        for place, (panel, title) in enumerate(zip_longest(grid.flat, self.panels)):
            if title is None:
                panel.remove()
                continue
            head = "" if count > 1 else "Latency by message size: "
            panel.set_title(f"{head}{units.shortened(title, 40)}", fontsize=9 if not head else None)
            for name, line in self.panels[title].items():
                draw_line(panel, line, *looks[name])
            if place % across == 0:
                panel.set_ylabel("duration of a call (logarithmic)")
            if place + across >= count:  # none is below it
                panel.set_xlabel("message size (logarithmic)")
                panel.tick_params(labelbottom=True)
        grid[0, 0].set_yscale("log")
        grid[0, 0].set_xscale("log", base=2)
        time_axis(grid[0, 0].yaxis, is_log=True)
        size_axis(grid[0, 0].xaxis, [*map(place_of, shown)], 7 if across == 1 else 4)
        for name, (colour, style) in looks.items():
            grid[0, -1].plot([], [], style, color=colour, marker="o", markersize=4, label=name)
        grid[0, -1].legend(
            title="line: median\nbands: up to 95, 99 %\nhollow: below 20 calls",
            title_fontsize=8,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
        )


def lines_of(rows: Iterable[Row]) -> Lines | None:
    """Among the rows that have a place on the axis of sizes, those with the most time, the largest
    first."""
    largest = by_time((units.visible(row.communicator), row) for row in rows if place_of(row))
    return (
        Lines(
            {
                title: {
                    name: sorted(line, key=place_of)
                    for name, line in islice(
                        by_time((name_of(row), row) for row in own).items(), MOST_LINES
                    )
                }
                for title, own in islice(largest.items(), MOST_PANELS)
            }
        )
        if largest
        else None
    )


def by_time(named: Iterable[tuple[str, Row]]) -> dict[str, list[Row]]:
    """The rows of each name; those with the most time first."""
    groups = gathered(named).items()
    return dict(sorted(groups, key=lambda group: -sum(row.total_ns for row in group[1])))


def draw_line(axes, line: Sequence[Row], colour: str, style: str) -> None:
    """Points of too few calls for a percentile are hollow, and without a band."""
    places, medians = [*map(place_of, line)], [point.p50_ns for point in line]
    for key, alpha in (("p95_ns", 0.22), ("p99_ns", 0.14)):  # up to there, and how dark
        tops = [getattr(point, key) or point.p95_ns or nan for point in line]
        axes.fill_between(places, medians, tops, color=colour, alpha=alpha, linewidth=0)
    axes.plot(places, medians, style, color=colour, linewidth=1.6)
    for place, median, point in zip(places, medians, line):
        inside = "white" if point.p95_ns is None else colour
        axes.plot(place, median, "o", color=colour, markerfacecolor=inside, markersize=4)


def size_axis(axis, sizes: Sequence[int], most: int) -> None:
    """Ticks at powers of two, about so many at most."""
    first, last = max(min(sizes), 1).bit_length() - 1, max(max(sizes), 1).bit_length()
    axis.set_ticks([1 << power for power in range(first, last + 1, -(-(last - first) // most))])
    axis.set_ticks([], minor=True)
    axis.set_major_formatter(lambda size, _: units.size(int(size)))


def name_of(row: Row) -> str:
    name = units.call_name(units.visible(row.call), row.memory_kind, row.measure)
    return name if row.rank is None else f"{name}, rank {row.rank}"


def place_of(row: Row) -> int:
    """Position of a size on the axis; a bin without upper bound stands at its lower."""
    return row.bytes if row.bytes is not None else row.bytes_low


class Histogram(NamedTuple):
    rows: Sequence[Row]
    size: tuple[float, float] = (8.0, 4.5)

    def draw(self, axes) -> None:
        """Percentiles that there are calls enough for are lines, named below the title so that they
        cannot run into each other."""
        rows = self.rows
        low = [max(row.low_ns, LEAST_NS) for row in rows]
        axes.bar(
            low,
            [row.density for row in rows],
            [row.high_ns - left for row, left in zip(rows, low)],
            align="edge",
            color=of_call(rows[0].call),
            edgecolor="white",
            linewidth=0.6,
        )
        axes.set_xscale("log")
        if rows[-1].high_ns < 2 * low[0]:  # a bucket or two are no picture of their own
            axes.set_xlim(low[0] / 2, 2 * rows[-1].high_ns)
        axes.set_title(self.title, pad=26)
        axes.set(
            xlabel="duration (logarithmic)", ylabel="calls per octave (doubling of the duration)"
        )
        axes.grid(axis="x", visible=False)
        time_axis(axes.xaxis, is_log=True)
        buckets = [(row.low_ns, row.high_ns, row.count) for row in rows]
        for percent, name, fewest, style in PERCENTILES:
            if sum(row.count for row in rows) >= fewest:
                at_ns = of_buckets(buckets, percent, rows[0].low_ns, rows[-1].high_ns)
                label = f"{name}: {time_text(at_ns)}"
                axes.axvline(at_ns, color="#333333", linestyle=style, linewidth=1.2, label=label)
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2, borderpad=0
        )

    @property
    def title(self) -> str:
        """MPI_Allreduce of 4 MiB: 1,200 calls."""
        first, count = self.rows[0], sum(row.count for row in self.rows)
        low, high = first.bytes_low or 0, first.bytes_high
        sizes = "all sizes" if not low and high is None else units.size_range(low, high)
        of = f" of {sizes}" if low or high or high is None else ""
        noun = {
            "device": "time on the device",
            "captured": "call into a CUDA graph",
            "completion": "time to completion",
        }.get(first.measure, "call")
        word, _, rest = noun.partition(" ")
        counted = f"{units.counted(count, word)} {rest}".rstrip()
        where = " on the host" if noun == "call" and first.call.startswith("nccl") else ""
        return units.visible(f"{first.call}{of}: {counted}{where}")


class Matrix(NamedTuple):
    """quantity: bytes or count. Pairs that exchange nothing stay empty."""

    rows: Sequence[Row]
    world_size: int
    quantity: str
    size: tuple[float, float] = (6.6, 5.4)

    def draw(self, axes) -> None:
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap

        block = -(-self.world_size // MOST_FIELDS) or 1
        width, last = -(-self.world_size // block), max(self.world_size - 0.5, 0.5)
        amounts, (what, show) = (
            np.zeros((width, width)),
            {
                "count": ("messages", units.count),
                "bytes": ("volume", units.volume),
            }[self.quantity],
        )
        for row in self.rows:
            amounts[row.sender // block, row.receiver // block] += getattr(row, self.quantity)
        image = axes.imshow(
            np.ma.masked_equal(amounts, 0),
            vmin=0,
            extent=(-0.5, last, last, -0.5),
            cmap=ListedColormap(colormaps["Blues"](np.linspace(0.2, 1.0, 256))),
            interpolation="nearest",
        )
        axes.figure.colorbar(
            image,
            ax=axes,
            shrink=0.85,
            label=f"{what} (linear)",
            format=lambda value, _: show(round(value)),
        )
        ticks = rank_ticks(self.world_size)
        axes.set(
            xlabel="receiver (world rank)",
            ylabel="sender (world rank)",
            xticks=ticks,
            yticks=ticks,
            title=f"Point-to-point {what}",
            facecolor="#fcfdfe",  # also in dark mode: darker is more
        )
        axes.grid(visible=False)


def matrix_of(rows: Sequence[Row], world_size: int, quantity: str) -> Matrix | None:
    """None: nothing to draw. Processes outside the job, and ranks that are not known, have no place
    in it."""
    ranks = range(world_size)
    inside = [
        row
        for row in rows
        if row.sender in ranks and row.receiver in ranks and getattr(row, quantity)
    ]
    return Matrix(inside, world_size, quantity) if inside else None


def rank_ticks(world_size: int) -> list[int]:
    """Powers of two apart, as ranks fill hosts."""
    step = 1 << (-(-world_size // TICKS) - 1).bit_length()
    return list(range(0, world_size, step))
