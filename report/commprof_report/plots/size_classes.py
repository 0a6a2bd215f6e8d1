"""The figures of hvprof: calls and time by size class, the time per call, and latency over message
size with powers of two marked. A second run, without fusion, stands beside the first, paler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..base import units
from ..base.gather import gathered
from ..calls.odd_sizes import OddSizes
from ..calls.views import Row
from ..display.colours import NEUTRAL, OTHER_CALLS, of_call
from .axis import size_axis, time_axis, time_text

MOST_CALLS, MOST_CURVES, MOST_LABELLED = 6, 6, 4
CONTROL, OTHER = "control", "other calls"
CONTROL_COLOUR = NEUTRAL
PALE = 0.4  # opacity of the second run
ODD = "D"  # a diamond


class Side(NamedTuple):
    """A run. rows: all ranks together, of the best known times; is_stepped: it has steps."""

    fusion: str
    ranks: int
    is_stepped: bool
    rows: Sequence[Row]
    sizes: Sequence[Row]
    odd_sizes: Sequence[OddSizes]


class Bar(NamedTuple):
    """The time of calls of one name in a size class. mean_ns: of a call."""

    name: str
    calls: float
    time_ns: float


Picture = Sequence[Side]  # none or one or two
Class = tuple[int, "int | None"]


def figure_size(picture: Picture) -> tuple[float, float]:
    return 11.0, 7.5


def draw(axes, picture: Picture) -> None:
    figure = axes.figure
    axes.remove()
    (calls, times), (per_call, latency) = figure.subplots(2, 2)
    what = "in a step, mean rank" if are_stepped(picture) else "of a mean rank"
    classes = sorted({class_of(row) for side in picture for row in side.rows}, key=first_of)
    colours = colours_of(picture)
    draw_stacks(calls, picture, classes, colours, "calls")
    calls.set_title("Calls by message size")
    calls.set_ylabel(f"calls {what}")
    draw_stacks(times, picture, classes, colours, "time_ns")
    times.set_title("Time by message size")
    times.set_ylabel(f"time {what}")
    time_axis(times.yaxis)
    draw_means(per_call, picture, classes, colours)
    draw_latency(latency, picture, colours)
    legend(times, picture, colours)


def draw_stacks(
    axes, picture: Picture, classes: Sequence[Class], colours: Mapping[str, str], key: str
) -> None:
    """Bars of a class stand beside each other, one for each run."""
    width = 0.8 / len(picture)
    for number, side in enumerate(picture):
        bars = bars_of(side, colours, are_stepped(picture))
        for place, each in enumerate(classes):
            x, low = place + (number - (len(picture) - 1) / 2) * width, 0.0
            for bar in sorted(bars.get(each, ()), key=lambda bar: [*colours].index(bar.name)):
                axes.bar(
                    x, getattr(bar, key), 0.92 * width, bottom=low, color=colours[bar.name],
                    alpha=PALE if number else 1.0,
                )
                low += getattr(bar, key)
            if low:
                text = time_text(low) if key == "time_ns" else units.three_digits(low)
                axes.annotate(
                    text, (x, low), (0, 2), textcoords="offset points", ha="center", fontsize=8
                )
    axes.set_ylim(0, 1.1 * axes.dataLim.y1 or 1)
    label_classes(axes, classes)


def draw_means(
    axes, picture: Picture, classes: Sequence[Class], colours: Mapping[str, str]
) -> None:
    """Time per call: bulk calls, as the mean of all calls in the class, side by side."""
    columns = [
        (number, name) for number in range(len(picture)) for name in colours if name != CONTROL
    ]
    for number, side in enumerate(picture):
        for row in (row for row in side.rows if row.traffic == "bulk"):
            name = name_of(row) if name_of(row) in colours else OTHER
            column = columns.index((number, name)) + 0.5
            x = classes.index(class_of(row)) + 0.8 * (column / len(columns) - 0.5)
            axes.plot(
                [x], [row.mean_ns], "o", color=colours[name], markersize=7,
                alpha=PALE if number else 1.0,
            )
            if len(columns) <= MOST_LABELLED:
                axes.annotate(
                    time_text(row.mean_ns), (x, row.mean_ns), (0, 6), textcoords="offset points",
                    ha="center", fontsize=8,
                )
    axes.set_yscale("log")
    axes.set_title("Time per call (bulk)")
    axes.set_ylabel("mean duration of a call")
    time_axis(axes.yaxis, is_log=True)
    label_classes(axes, classes)


def draw_latency(axes, picture: Picture, colours: Mapping[str, str]) -> None:
    """Medians; the dashed line joins powers of two with 20 calls or more, from which the cost of
    other sizes is taken."""
    sizes = [row.bytes_low for side in picture for row in exact(side)]
    for number, side in enumerate(picture):
        for curve in curves_of(side):
            look = {
                "color": colours.get(name_of(curve[0]), CONTROL_COLOUR), "markersize": 5,
                "alpha": PALE if number else 1.0,
            }
            powers = [row for row in curve if row.power_of_two]
            odd = [row for row in curve if not row.power_of_two]
            line = [row for row in powers if row.p95_ns is not None]
            axes.plot(*points_of(line), linestyle="--", linewidth=1.2, **look)
            axes.plot(*points_of(powers), "o", **look)
            axes.plot(*points_of(odd), ODD, markerfacecolor="white", **look)
    axes.set_title("Latency by message size (median)")
    axes.set_xlabel("message size")
    axes.set_ylabel("duration of a call")
    if sizes:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        size_axis(axes.xaxis, min(sizes), max(sizes), 5)
        time_axis(axes.yaxis, is_log=True)
    found = [text for side in picture for text in finding(side, len(picture) > 1)]
    axes.text(
        0.02, 0.98, "\n".join(found), transform=axes.transAxes, va="top", fontsize=8,
        color="#333333",
    )


def finding(side: Side, is_named: bool) -> Iterator[str]:
    """MPI_Allreduce: no powers of two take 12.1 % more"""
    for odd in side.odd_sizes:
        more = "more" if odd.excess_ns > 0 else "less"
        where = f" ({side.fusion})" if is_named else ""
        yield (
            f"{units.visible(odd.call)}{where}: sizes between powers of two take "
            f"{units.share(abs(odd.share))} {more}"
        )


def legend(axes, picture: Picture, colours: Mapping[str, str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks: list[object] = [Patch(color=colour, label=name) for name, colour in colours.items()]
    if len(picture) > 1:
        marks += [
            Patch(color="#777777", alpha=PALE if number else 1.0, label=side.fusion)
            for number, side in enumerate(picture)
        ]
    look = {"color": "#777777", "linewidth": 0, "markersize": 5}
    marks.append(Line2D([], [], marker="o", label="power of two", **look))
    marks.append(Line2D([], [], marker=ODD, markerfacecolor="white", label="other size", **look))
    axes.legend(handles=marks, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def label_classes(axes, classes: Sequence[Class]) -> None:
    axes.set_xticks(
        range(len(classes)), [units.size_range(*each).replace(" - ", " -\n") for each in classes]
    )
    axes.set_xlim(-0.6, max(len(classes), 2) - 0.4)
    axes.grid(axis="x", visible=False)


def bars_of(side: Side, colours: Mapping[str, str], in_step: bool) -> dict[Class, list[Bar]]:
    """By class: those of one name are one."""
    sums: dict[Class, dict[str, Bar]] = {}
    for row in side.rows:
        name = CONTROL if row.traffic == CONTROL else name_of(row)
        name = name if name in colours else OTHER
        calls, time_ns = (
            (row.calls_per_step, row.time_per_step_ns) if in_step
            else (row.count / side.ranks, row.total_ns / side.ranks)
        )
        old = sums.setdefault(class_of(row), {}).get(name, Bar(name, 0, 0))
        sums[class_of(row)][name] = Bar(
            name, old.calls + (calls or 0), old.time_ns + (time_ns or 0)
        )
    return {each: list(bars.values()) for each, bars in sums.items()}


def are_stepped(picture: Picture) -> bool:
    """All have steps with such calls in them."""
    return all(side.is_stepped and any(row.calls_per_step for row in side.rows) for side in picture)


def colours_of(picture: Picture) -> dict[str, str]:
    """Calls of bulk data, of files, or of groups of NCCL's, by their time; then the rest."""
    spent: dict[str, float] = {}
    for row in (row for side in picture for row in side.rows if row.traffic != CONTROL):
        spent[name_of(row)] = spent.get(name_of(row), 0) + row.total_ns
    named = sorted(spent, key=spent.__getitem__, reverse=True)
    colours = {name: of_call(name) for name in named[:MOST_CALLS]}
    if len(named) > MOST_CALLS:
        colours[OTHER] = OTHER_CALLS
    if any(row.traffic == CONTROL for side in picture for row in side.rows):
        colours[CONTROL] = CONTROL_COLOUR
    return colours


def curves_of(side: Side) -> list[list[Row]]:
    """By call and communicator: those with the most time."""
    curves = gathered(
        ((row.call, row.identity, row.memory_kind, row.measure), row) for row in exact(side)
    )
    largest = sorted(curves.values(), key=lambda rows: -sum(row.total_ns for row in rows))
    return [sorted(curve, key=lambda row: row.bytes_low) for curve in largest[:MOST_CURVES]]


def exact(side: Side) -> list[Row]:
    """Sizes that have a place on the axis, and were not counted with others."""
    return [row for row in side.sizes if row.bytes_low and row.bytes_low == row.bytes_high]


def points_of(rows: Sequence[Row]) -> tuple[list[int], list[float]]:
    return [row.bytes_low for row in rows], [row.p50_ns for row in rows]


def name_of(row: Row) -> str:
    return units.visible(row.call)


def class_of(row: Row) -> Class:
    return row.bytes_low, row.bytes_high


def first_of(each: Class) -> int:
    return each[0]
