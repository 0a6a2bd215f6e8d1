"""Bars of stacked parts: rows from the top, in panels beside each other, or upright ones beside
each other, one a rank, GPU or step. What is drawn of calls, kernels, ranks, GPUs and steps, in a
file and by the page's own scripts."""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from statistics import fmean
from typing import Any, NamedTuple

from ..base import Row, np, present, units
from ..display import colours

KERNELS = (("computing", colours.COMPUTING), ("communicating", colours.COMMUNICATING))
MOST_ROWS, LONGEST_NAME = 24, 48
MOST_BARS, MOST_NAMES, MOST_STEPS = 50, 24, 800  # upright
NOTE, LEGEND = 0.13, 3  # inches: the height of a line of a note, and what is beside the bars
MOST_LISTED, MOST_CALLS = 12, 6
MOST_CUT, CUT_FROM = 40, 2.5  # bars of steps, x the highest usual one: their times stand above them
SPLIT = (
    ("transfer_ns", "transfer", colours.TRANSFER),
    ("wait_ns", "waiting", colours.WAITING),
    ("unsplit_ns", "in MPI, not split", colours.UNSPLIT),
)
UNSPLIT = (("communication_ns", "in MPI", colours.UNSPLIT),)
REST = (("file_ns", "files", colours.FILES), ("outside_ns", "outside MPI", colours.OUTSIDE))

OF_GPUS = (
    ("computing", lambda row: row.computing_ns - row.hidden_ns, colours.COMPUTING),
    ("computing and communicating", lambda row: row.hidden_ns, colours.BOTH),
    ("exposed communication", lambda row: row.exposed_ns, colours.COMMUNICATING),
    ("only copying", lambda row: row.only_copying_ns, colours.COPYING),
    ("idle, in MPI", lambda row: row.starved_ns, colours.IN_MPI),
    ("idle", lambda row: row.idle_ns - row.starved_ns, colours.OUTSIDE),
)


# values: of each bar. colour: of all of them, or of each
Part = namedtuple("Part", "name colour values")
# unit: time or count. notes: at the ends of bars; where rows have none, their sums. most: higher
# bars are cut there, and their notes say how high they are
Panel = namedtuple("Panel", "head unit parts notes most", defaults=[(), None])


class Picture(NamedTuple):
    """names: of the bars. along: the axis of upright ones; empty: rows, from the top."""

    title: str
    names: Sequence[str]
    panels: Sequence[Panel]
    along: str = ""

    @property
    def size(self) -> tuple[float, float]:
        bars = len(self.names)
        if self.along:
            return min(max(8.0, 5 + 0.12 * bars), 16.0), 4.5
        return 3.5 + 4.5 * len(self.panels), 1.9 + 0.34 * min(max(bars, 2), MOST_ROWS)

    def draw(self, axes) -> None:
        if self.along:
            draw_upright(axes, self, *self.panels)
        else:
            draw_rows(axes, self)


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
    parts = by_call(((row.call, row.rank, row.total_ns) for row in rows), ranks)
    library, is_device = rows[0].library.upper(), rows[0].measure == "device"
    head = "time on the device" if is_device else f"time in {library}, all threads"
    return Picture(
        f"Time of {library}'s operations by rank" if is_device else f"Time in {library} by rank",
        [*map(str, ranks)],
        [Panel(head, "time", parts)],
        "rank",
    )


def by_call(amounts: Iterable[tuple[str, Any, Any]], bars: Sequence[Any]) -> list[Part]:
    """amounts: call, bar, and how much; those of many calls but the first are added up."""
    of_call: dict[str, Counter] = {}
    for call, bar, amount in amounts:
        of_call.setdefault(call, Counter())[bar] += amount
    for call in [*of_call][MOST_CALLS:] if len(of_call) > MOST_CALLS + 1 else ():
        of_call.setdefault("other calls", Counter()).update(of_call.pop(call))
    return [
        Part(units.visible(call), colours.of_call(call), [own[bar] for bar in bars])
        for call, own in of_call.items()
    ]


def of_gpus(rows: Sequence[Row]) -> Picture | None:
    """Communication apart, as hidden behind computing and as exposed."""
    several = len({row.rank for row in rows}) < len(rows)
    parts = [Part(name, colour, [*map(part, rows)]) for name, part, colour in OF_GPUS]
    return (
        Picture(
            "What the GPUs did",
            [f"{row.ranks}:{row.device}" if several else row.ranks for row in rows],
            [Panel("traced time", "time", parts)],
            "rank:GPU" if several else "rank",
        )
        if rows
        else None
    )


def of_waits(ranks: Sequence[Row]) -> Picture | None:
    """None where there is neither waiting nor transfer."""
    parts = [
        Part("transfer", colours.TRANSFER, [float(row.transfer_ns) for row in ranks]),
        Part("waiting for other ranks", colours.WAITING, [float(row.wait_ns) for row in ranks]),
    ]
    return (
        Picture(
            "Waiting and transfer by rank",
            [str(row.rank) for row in ranks],
            [Panel("time in collectives and messages", "time", parts)],
            "rank",
        )
        if any(any(part.values) for part in parts)
        else None
    )


def of_steps(rows: Sequence[Row]) -> Picture | None:
    """The time of each step; of many, each bar is the mean of several neighbours. Where only a
    background thread communicates nothing is known of the parts."""
    if not rows:
        return None
    groups = step_groups(rows)
    parts = (SPLIT if all(row.wait_ns is not None for row in rows) else UNSPLIT) + REST
    if any(row.communication_ns is None for row in rows):
        parts = (("step_ns", "step", colours.OUTSIDE),)
    times = [mean_of(group, "step_ns") for group in groups]
    usual = [row.step_ns for row in rows if not row.is_outlier and not row.is_warm_up] or times
    most = min(max(times), max(CUT_FROM * max(usual), *sorted(times)[-MOST_CUT - 1 :][:1]))
    notes = [
        time_text(ns) if ns > most or any(row.is_outlier for row in group) else ""
        for ns, group in zip(times, groups)
    ]
    drawn = [
        Part(name, colour, [mean_of(group, key) for group in groups]) for key, name, colour in parts
    ]
    return Picture(
        "Time of the steps",
        [str(group[0].step) for group in groups],
        [Panel("time per step (mean over ranks)", "time", drawn, notes, most)],
        "step",
    )


def step_groups(rows: Sequence[Row]) -> list[Sequence[Row]]:
    size = -(-len(rows) // MOST_STEPS)
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def mean_of(group: Sequence[Row], key: str) -> float:
    return fmean(getattr(row, key) for row in group)


def steps_data(rows: Sequence[Row], remark: Callable[[Row], str]) -> dict[str, object]:
    """The same for the page's script (display/steps.js). first, last: the steps of a bar. Times in
    nanoseconds."""
    groups, (panel,) = step_groups(rows), present(of_steps(rows)).panels
    return {
        "first": [group[0].step for group in groups],
        "last": [group[-1].step for group in groups],
        "times": [round(mean_of(group, "step_ns")) for group in groups],
        "notes": panel.notes,
        "top": round(present(panel.most)),
        "parts": [
            {
                "name": part.name,
                "colour": colours.variable(str(part.colour)),
                "values": [*map(round, part.values)],
            }
            for part in panel.parts
            if any(part.values)
        ],
        "remarks": [remark(group[0]) if len(group) == 1 else "" for group in groups],
    }


def stacked(parts: Sequence[Part]) -> Iterator[tuple[Part, list[float], list[float]]]:
    """The parts that have any values, with where they begin and end."""
    ends = [0.0] * len(parts[0].values)
    for part in (part for part in parts if any(part.values)):
        begins, ends = ends, [end + value for end, value in zip(ends, part.values)]
        yield part, begins, ends


def draw_upright(axes, picture: Picture, panel: Panel) -> None:
    """Bars are cut where the panel ends; the time of each stands above it."""
    bars, most = range(len(picture.names)), panel.most or inf
    for part, begins, ends in stacked(panel.parts):
        low, high = (np.minimum(values, most) for values in (begins, ends))
        look: dict[str, Any] = {"color": part.colour, "label": part.name}
        if len(bars) < MOST_BARS:
            axes.bar(bars, high - low, bottom=low, width=0.8, **look)
        else:  # as one shape
            edges = [place - 0.5 for place in range(len(bars) + 1)]
            axes.stairs(high, edges, baseline=low, fill=True, **look)
    if panel.most:
        axes.set_ylim(0, 1.4 * panel.most)
    near = -(-NOTE * len(bars) // (picture.size[0] - LEGEND))
    marked = [place for place in bars if panel.notes and panel.notes[place]]
    for group in neighbours(marked, near):
        times = [ends[place] for place in group]
        said = " to ".join(dict.fromkeys((time_text(min(times)), time_text(max(times)))))
        for place in group:  # the text begins above them all
            end, text = (max(times), said) if place == group[0] else (ends[place], "")
            axes.annotate(
                f"\N{BLACK RIGHT-POINTING TRIANGLE} {text}",
                (place, min(end, most)),
                (0, 2),
                textcoords="offset points",
                rotation=90,
                ha="center",
                va="bottom",
                fontsize=7,
                color=colours.ALERT,
            )
    places = bars[:: max(1, -(-len(bars) // MOST_NAMES))]
    axes.set_xticks(places, [picture.names[place] for place in places])
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.01 if len(bars) > 12 else 0.05)
    axes.set(ylabel=panel.head, xlabel=picture.along, title=picture.title)
    axes.grid(axis="x", visible=False)
    time_axis(axes.yaxis)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))


def neighbours(places: Sequence[int], near: float) -> list[list[int]]:
    """In groups that share a text: each is nearer than `near` to the first of its group."""
    groups: list[list[int]] = []
    for place in places:
        if groups and place - groups[-1][0] < near:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


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
    left = len(picture.names) - rows
    more = f" ({left:,} more rows)" if left else ""
    grid[0].set(ylim=(rows - 0.4, -0.6), title=picture.title + more)
    handles = {
        name: handle for axes in grid for handle, name in zip(*axes.get_legend_handles_labels())
    }
    if len(handles) > 1:
        grid[-1].legend(
            handles.values(),
            handles,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
        )


def draw_panel(axes, panel: Panel, rows: int) -> None:
    ends = [0.0] * rows
    first = [part._replace(values=part.values[:rows]) for part in panel.parts]
    for part, begins, ends in stacked(first):
        axes.barh(
            range(rows),
            part.values,
            left=begins,
            height=0.72,
            color=part.colour,
            label=part.name,
        )
    show = time_text if panel.unit == "time" else units.three_digits
    for place, (end, note) in enumerate(zip(ends, panel.notes or map(show, ends))):
        axes.annotate(
            note,
            (end, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.set(xlim=(0, (1.5 if panel.notes else 1.22) * max(ends) or 1), xlabel=panel.head)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    if panel.unit == "time":
        time_axis(axes.xaxis)
        return
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 2.5, 5, 10])
    axes.xaxis.set_major_formatter(lambda value, _: show(value))


def time_label(ns: float, _position: int = 0) -> str:
    """A tick of a time axis: 100 ns, 20 µs, 1.5 s."""
    for unit_ns, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if abs(ns) >= unit_ns:
            return f"{ns / unit_ns:g} {unit}"
    return f"{ns:g} ns" if ns else "0"


def time_text(ns: float) -> str:
    return units.duration(ns).replace("us", "µs")


def time_axis(axis, is_log: bool = False) -> None:
    """`axis` is axes.xaxis or axes.yaxis, holding nanoseconds."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    axis.set_major_formatter(time_label)
    low, high = axis.get_view_interval()
    subs = (1,) if is_log and high > 300 * low else (1, 2, 5)  # powers of ten are ticks enough
    axis.set_major_locator(
        LogLocator(10, subs=subs, numticks=12) if is_log else MaxNLocator(6, steps=[1, 2, 5, 10])
    )
    if is_log:
        axis.set_minor_formatter(NullFormatter())
