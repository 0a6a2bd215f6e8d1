"""The figures of hvprof: calls and time by size class, and the time per call. A second run, without
fusion, stands beside the first, paler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from ..base import units
from ..calls.views import Row
from ..display.colours import NEUTRAL, OTHER_CALLS, of_call
from .axis import time_axis, time_text
from .bars import Part, stacked
from .size_lines import by_time

MOST_CALLS, MOST_LABELLED = 6, 4
CONTROL, OTHER = "control", "other calls"
CONTROL_COLOUR = NEUTRAL
OF_STEP = {"count": "calls_per_step", "total_ns": "time_per_step_ns"}
PALE = 0.4  # opacity of the second run


class Side(NamedTuple):
    """A run. rows: all ranks together, of the best known times; is_stepped: it has steps."""

    fusion: str
    ranks: int
    is_stepped: bool
    rows: Sequence[Row]


Picture = Sequence[Side]  # none or one or two
Class = tuple[int, "int | None"]


def figure_size(picture: Picture) -> tuple[float, float]:
    return 14.0, 4.0


def draw(axes, picture: Picture) -> None:
    figure = axes.figure
    axes.remove()
    calls, times, per_call = figure.subplots(1, 3)
    what = "in a step, mean rank" if are_stepped(picture) else "of a mean rank"
    classes = sorted({class_of(row) for side in picture for row in side.rows}, key=itemgetter(0))
    colours = colours_of(picture)
    draw_stacks(calls, picture, classes, colours, "count")
    calls.set_title("Calls by message size")
    calls.set_ylabel(f"calls {what}")
    draw_stacks(times, picture, classes, colours, "total_ns")
    times.set_title("Time by message size")
    times.set_ylabel(f"time {what}")
    time_axis(times.yaxis)
    draw_means(per_call, picture, classes, colours)
    legend(per_call, picture, colours)


def draw_stacks(
    axes, picture: Picture, classes: Sequence[Class], colours: Mapping[str, str], key: str
) -> None:
    """Bars of a class stand beside each other, one for each run."""
    width = 0.8 / len(picture)
    for number, side in enumerate(picture):
        beside = (number - (len(picture) - 1) / 2) * width
        places = [place + beside for place in range(len(classes))]
        tops: list[float] = []
        parts = parts_of(side, classes, colours, key, are_stepped(picture))
        for part, begins, tops in stacked(parts):
            axes.bar(
                places, part.values, 0.92 * width, bottom=begins, color=part.colour,
                alpha=PALE if number else 1.0,
            )
        for x, top in zip(places, tops):
            text = time_text(top) if key == "total_ns" else units.three_digits(top)
            axes.annotate(
                text if top else "", (x, top), (0, 2), textcoords="offset points", ha="center",
                fontsize=8,
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


def legend(axes, picture: Picture, colours: Mapping[str, str]) -> None:
    from matplotlib.patches import Patch

    marks = [Patch(color=colour, label=name) for name, colour in colours.items()]
    if len(picture) > 1:
        marks += [
            Patch(color="#777777", alpha=PALE if number else 1.0, label=side.fusion)
            for number, side in enumerate(picture)
        ]
    axes.legend(handles=marks, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def label_classes(axes, classes: Sequence[Class]) -> None:
    axes.set_xticks(
        range(len(classes)), [units.size_range(*each).replace(" - ", " -\n") for each in classes]
    )
    axes.set_xlim(-0.6, max(len(classes), 2) - 0.4)
    axes.grid(axis="x", visible=False)


def parts_of(
    side: Side, classes: Sequence[Class], colours: Mapping[str, str], key: str, in_step: bool
) -> list[Part]:
    """The calls or their time in each class, by name."""
    values = {name: [0.0] * len(classes) for name in colours}
    for row in side.rows:
        name = CONTROL if row.traffic == CONTROL else name_of(row)
        amount = getattr(row, OF_STEP[key]) if in_step else getattr(row, key) / side.ranks
        values[name if name in colours else OTHER][classes.index(class_of(row))] += amount or 0
    return [Part(name, colour, values[name]) for name, colour in colours.items()]


def are_stepped(picture: Picture) -> bool:
    """All have steps with such calls in them."""
    return all(side.is_stepped and any(row.calls_per_step for row in side.rows) for side in picture)


def colours_of(picture: Picture) -> dict[str, str]:
    """Calls of bulk data, of files, or of groups of NCCL's, by their time; then the rest."""
    rows = [row for side in picture for row in side.rows]
    named = [*by_time((name_of(row), row) for row in rows if row.traffic != CONTROL)]
    colours = {name: of_call(name) for name in named[:MOST_CALLS]}
    if len(named) > MOST_CALLS:
        colours[OTHER] = OTHER_CALLS
    if any(row.traffic == CONTROL for row in rows):
        colours[CONTROL] = CONTROL_COLOUR
    return colours


def name_of(row: Row) -> str:
    return units.visible(row.call)


def class_of(row: Row) -> Class:
    return row.bytes_low, row.bytes_high
