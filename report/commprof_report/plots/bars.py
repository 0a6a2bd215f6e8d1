"""Bars of stacked parts: rows from the top, in panels beside each other, or upright ones beside
each other, one a rank or GPU. What is drawn of calls, kernels, ranks and GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..base import units
from ..base.field import Row
from ..display import colours
from ..gpu.gpu_activity import GpuDeviceRow
from .axis import time_axis, time_text

# of parts that are neither waiting nor outside MPI
KINDS = (*colours.SIDES, colours.OTHER_CALLS)
KERNELS = (("computing", colours.COMPUTING), ("communicating", colours.COMMUNICATING))
WAITING, IN_MPI, OUTSIDE = colours.WAITING, colours.TRANSFER, colours.OUTSIDE
MOST_ROWS, LONGEST_NAME = 24, 48
MOST_BARS, MOST_NAMES = 50, 24  # upright
MOST_LISTED, MOST_CALLS = 12, 6
OF_GPUS = (
    ("computing", lambda row: row.computing_ns - row.hidden_ns, colours.COMPUTING),
    ("computing and communicating", lambda row: row.hidden_ns, colours.BOTH),
    ("exposed communication", lambda row: row.exposed_ns, colours.COMMUNICATING),
    ("only copying", lambda row: row.only_copying_ns, colours.COPYING),
    ("idle, in MPI", lambda row: row.starved_ns, colours.IN_MPI),
    ("idle", lambda row: row.idle_ns - row.starved_ns, colours.OUTSIDE),
)


class Part(NamedTuple):
    """values: of each bar. colour: of all of them, or of each."""

    name: str
    colour: str | Sequence[str]
    values: Sequence[float]


class Panel(NamedTuple):
    """unit: time, bytes or share. notes: at the ends of bars; where there are none, their sums."""

    head: str
    unit: str
    parts: Sequence[Part]
    notes: Sequence[str] = ()


class Picture(NamedTuple):
    """names: of the bars. along: the axis of upright ones; empty: rows, from the top."""

    title: str
    names: Sequence[str]
    panels: Sequence[Panel]
    along: str = ""


def of_calls(rows: Sequence[Row]) -> Picture | None:
    """The calls with the most time."""
    largest = sorted(rows, key=lambda row: -row.total_ns)[:MOST_LISTED]
    look = [colours.of_call(row.call) for row in largest]
    part = Part("time", look, [row.total_ns for row in largest])
    panel = Panel("time over all ranks", "time", [part], [call_text(row) for row in largest])
    return Picture("Time by call", [row.call for row in largest], [panel]) if largest else None


def call_text(row: Row) -> str:
    share = "" if row.share_of_wall is None else f", {units.share(row.share_of_wall)} of wall"
    return time_text(row.total_ns) + share


def of_kernels(rows: Sequence[Row]) -> Picture | None:
    """The kernels with the most time, computing and communicating."""
    largest = sorted(rows, key=lambda row: -row.total_ns)[:MOST_LISTED]
    parts = [
        Part(name, colour, [row.total_ns * (row.is_communication == kind) for row in largest])
        for kind, (name, colour) in enumerate(KERNELS)
    ]
    notes = [f"{time_text(row.total_ns)}, {units.share(row.share)}" for row in largest]
    panel = Panel("time over all GPUs", "time", parts, notes)
    return Picture("Time by kernel", [row.kernel for row in largest], [panel]) if largest else None


def of_ranks(rows: Sequence[Row]) -> Picture | None:
    """Each rank's time inside MPI, by call; without MPI that of NCCL's operations. Rows come with
    the call that took most first."""
    if not rows:
        return None
    ranks = sorted({row.rank for row in rows})
    calls = list(dict.fromkeys(row.call for row in rows))
    named = calls if len(calls) <= MOST_CALLS + 1 else calls[:MOST_CALLS]
    times: dict[str, dict[int, int]] = {}
    for row in rows:
        name = row.call if row.call in named else "other calls"
        times.setdefault(name, dict.fromkeys(ranks, 0))[row.rank] += row.total_ns
    library, is_device = rows[0].library.upper(), rows[0].measure == "device"
    parts = [
        Part(units.visible(call), colours.of_call(call), [*own.values()])
        for call, own in times.items()
    ]
    head = "time on the device" if is_device else f"time in {library}, all threads"
    return Picture(
        f"Time of {library}'s operations by rank" if is_device else f"Time in {library} by rank",
        [*map(str, ranks)], [Panel(head, "time", parts)], "rank",
    )


def of_gpus(rows: Sequence[GpuDeviceRow]) -> Picture | None:
    """Communication apart, as hidden behind computing and as exposed."""
    several = len({row.rank for row in rows}) < len(rows)
    parts = [Part(name, colour, [*map(part, rows)]) for name, part, colour in OF_GPUS]
    return Picture(
        "What the GPUs did",
        [f"{row.ranks}:{row.device}" if several else row.ranks for row in rows],
        [Panel("traced time", "time", parts)], "rank:GPU" if several else "rank",
    ) if rows else None


def of_waits(ranks: Sequence[Row]) -> Picture | None:
    """None where there is neither waiting nor transfer."""
    parts = [
        Part("transfer", colours.TRANSFER, [float(row.transfer_ns) for row in ranks]),
        Part("waiting for other ranks", colours.WAITING, [float(row.wait_ns) for row in ranks]),
    ]
    return Picture(
        "Waiting and transfer by rank", [str(row.rank) for row in ranks],
        [Panel("time in collectives and messages", "time", parts)], "rank",
    ) if any(any(part.values) for part in parts) else None


def figure_size(picture: Picture) -> tuple[float, float]:
    bars = len(picture.names)
    if picture.along:
        return min(max(8.0, 5 + 0.12 * bars), 16.0), 4.5
    return 3.5 + 4.5 * len(picture.panels), 1.9 + 0.34 * min(max(bars, 2), MOST_ROWS)


def draw(axes, picture: Picture) -> None:
    if picture.along:
        draw_upright(axes, picture, *picture.panels)
    else:
        draw_rows(axes, picture)


def stacked(parts: Sequence[Part]) -> Iterator[tuple[Part, list[float], list[float]]]:
    """The parts that have any values, with where they begin and end."""
    ends = [0.0] * len(parts[0].values)
    for part in (part for part in parts if any(part.values)):
        begins, ends = ends, [end + value for end, value in zip(ends, part.values)]
        yield part, begins, ends


def draw_upright(axes, picture: Picture, panel: Panel) -> None:
    bars = range(len(picture.names))
    if len(bars) < MOST_BARS:
        for part, begins, _ in stacked(panel.parts):
            axes.bar(
                bars, part.values, bottom=begins, width=0.8, color=part.colour, label=part.name
            )
    else:
        shapes(axes, [place - 0.5 for place in range(len(bars) + 1)], panel.parts)
    places = bars[:: max(1, -(-len(bars) // MOST_NAMES))]
    axes.set_xticks(places, [picture.names[place] for place in places])
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.01 if len(bars) > 12 else 0.05)
    axes.set_ylabel(panel.head)
    axes.set_xlabel(picture.along)
    axes.grid(axis="x", visible=False)
    axes.set_title(picture.title)
    time_axis(axes.yaxis)
    explain(axes)


def shapes(axes, edges: Sequence[float], parts: Sequence[Part]) -> None:
    """The bars of a part as one shape between edges."""
    for part, begins, ends in stacked(parts):
        axes.stairs(ends, edges, baseline=begins, fill=True, color=part.colour, label=part.name)


def explain(axes) -> None:
    """A legend in the order of the stack."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))


def draw_rows(axes, picture: Picture) -> None:
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
    first = [part._replace(values=part.values[:rows]) for part in panel.parts]
    for part, begins, ends in stacked(first):
        axes.barh(
            range(rows), part.values, left=begins, height=0.72, color=part.colour, label=part.name,
        )
    show = {"time": time_text, "bytes": units.volume, "share": units.share}[panel.unit]
    for place, (end, note) in enumerate(zip(ends, panel.notes or map(show, ends))):
        axes.annotate(
            note, (end, place), (4, 0), textcoords="offset points", va="center", fontsize=9,
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
