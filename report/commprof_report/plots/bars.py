"""Bars of stacked parts: rows from the top, in panels beside each other, or upright ones beside
each other, one a rank, GPU or step. What is drawn of calls, kernels, ranks, GPUs and steps, in a
file and by the page's own scripts.

Beside bars there are lines: latency over message size, the median with its bands up to the 95th and
99th percentile, broken at sizes of too few calls, a panel for each communicator or family; a
histogram: the density of the durations of one call at one size; and a map: who sends how much to
whom.
"""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, zip_longest
from math import expm1, inf, log1p, nan
from statistics import fmean
from typing import TYPE_CHECKING, Any, Dict, NamedTuple

from ..base import Row, gathered, np, of_buckets, units
from ..calls.by_size import LEAST_NS
from ..display import pictures

if TYPE_CHECKING:
    from ..compare.comparison import Comparison
    from ..compare.judge import Compared

MOST_ROWS, LONGEST_NAME = 24, 48
MOST_BARS, MOST_NAMES, MOST_STEPS = 50, 24, 800  # upright
NOTE, LEGEND = 0.13, 3  # inches: the height of a line of a note, and what is beside the bars
MOST_LISTED, MOST_CALLS = 12, 6
MOST_CUT, CUT_FROM = 40, 2.5  # bars of steps, x the highest usual one: their times stand above them
SPLIT = (
    ("transfer_ns", "transfer", pictures.TRANSFER),
    ("wait_ns", "waiting", pictures.WAITING),
    ("unsplit_ns", "in MPI, not split", pictures.UNSPLIT),
)
UNSPLIT = (("communication_ns", "in MPI", pictures.UNSPLIT),)
REST = (("file_ns", "files", pictures.FILES), ("outside_ns", "outside MPI", pictures.OUTSIDE))

OF_GPUS = (
    ("computing", lambda row: row.computing_ns - row.hidden_ns, pictures.COMPUTING),
    ("computing and communicating", lambda row: row.hidden_ns, pictures.BOTH),
    ("exposed communication", lambda row: row.exposed_ns, pictures.COMMUNICATING),
    ("only copying", lambda row: row.only_copying_ns, pictures.COPYING),
    ("idle, in MPI", lambda row: row.starved_ns, pictures.IN_MPI),
    ("idle", lambda row: row.idle_ns - row.starved_ns, pictures.OUTSIDE),
)


# values: of each bar. colour: of all of them, or of each
Part = namedtuple("Part", "name colour values")


class Picture(NamedTuple):
    """names: of the bars; head: of the axis of times; notes: at the ends of bars; where rows have
    none, their sums. most: higher bars are cut there, and their notes say how high they are.
    along: the axis of upright bars; empty: rows, from the top. data: of the same bars, where the
    page has a script that draws them."""

    title: str
    names: Sequence[str]
    head: str
    parts: Sequence[Part]
    notes: Sequence[str] = ()
    most: float | None = None
    along: str = ""
    data: dict[str, object] | None = None

    @property
    def size(self) -> tuple[float, float]:
        bars = len(self.names)
        if self.along:
            return min(max(8.0, 5 + 0.12 * bars), 16.0), 4.5
        return 8.0, 1.9 + 0.34 * min(max(bars, 2), MOST_ROWS)

    def draw(self, axes) -> None:
        (draw_upright if self.along else draw_rows)(axes, self)


def of_calls(rows: Sequence[Row]) -> Picture | None:
    """The calls with the most time."""
    largest = sorted(rows, key=lambda row: -row.total_ns)[:MOST_LISTED]
    look = [pictures.of_call(row.call) for row in largest]
    part = Part("time", look, [row.total_ns for row in largest])
    names, notes = [row.call for row in largest], [call_text(row) for row in largest]
    return Picture("Time by call", names, "time over all ranks", [part], notes) if largest else None


def call_text(row: Row) -> str:
    share = "" if row.share_of_wall is None else f", {units.share(row.share_of_wall)} of wall"
    return time_text(row.total_ns) + share


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
        head,
        parts,
        along="rank",
    )


def by_call(amounts: Iterable[tuple[str, Any, Any]], bars: Sequence[Any]) -> list[Part]:
    """amounts: call, bar, and how much; those of many calls but the first are added up."""
    of_call: dict[str, Counter] = {}
    for call, bar, amount in amounts:
        of_call.setdefault(call, Counter())[bar] += amount
    for call in [*of_call][MOST_CALLS:] if len(of_call) > MOST_CALLS + 1 else ():
        of_call.setdefault("other calls", Counter()).update(of_call.pop(call))
    return [
        Part(units.visible(call), pictures.of_call(call), [own[bar] for bar in bars])
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
            "traced time",
            parts,
            along="rank:GPU" if several else "rank",
        )
        if rows
        else None
    )


def of_waits(ranks: Sequence[Row]) -> Picture | None:
    """None where there is neither waiting nor transfer."""
    parts = [
        Part("transfer", pictures.TRANSFER, [float(row.transfer_ns) for row in ranks]),
        Part("waiting for other ranks", pictures.WAITING, [float(row.wait_ns) for row in ranks]),
    ]
    return (
        Picture(
            "Waiting and transfer by rank",
            [str(row.rank) for row in ranks],
            "time in collectives and messages",
            parts,
            along="rank",
        )
        if any(any(part.values) for part in parts)
        else None
    )


def of_steps(rows: Sequence[Row], remark: Callable[[Row], str]) -> Picture | None:
    """The time of each step; of many, each bar is the mean of several neighbours. Where only a
    background thread communicates nothing is known of the parts. For display/steps.js also the
    first and last step of a bar, and a remark on a single one; times in nanoseconds."""
    if not rows:
        return None
    many = -(-len(rows) // MOST_STEPS)
    groups = [rows[at : at + many] for at in range(0, len(rows), many)]
    parts = (SPLIT if all(row.wait_ns is not None for row in rows) else UNSPLIT) + REST
    if any(row.communication_ns is None for row in rows):
        parts = (("step_ns", "step", pictures.OUTSIDE),)
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
    data = {
        "first": [group[0].step for group in groups],
        "last": [group[-1].step for group in groups],
        "times": [*map(round, times)],
        "notes": notes,
        "top": round(most),
        "parts": [
            {
                "name": part.name,
                "colour": pictures.variable(str(part.colour)),
                "values": [*map(round, part.values)],
            }
            for part in drawn
            if any(part.values)
        ],
        "remarks": [remark(group[0]) if len(group) == 1 else "" for group in groups],
    }
    names, head = [str(group[0].step) for group in groups], "time per step (mean over ranks)"
    return Picture("Time of the steps", names, head, drawn, notes, most, "step", data)


def mean_of(group: Sequence[Row], key: str) -> float:
    return fmean(getattr(row, key) for row in group)


def stacked(parts: Sequence[Part]) -> Iterator[tuple[Part, list[float], list[float]]]:
    """The parts that have any values, with where they begin and end."""
    ends = [0.0] * len(parts[0].values)
    for part in (part for part in parts if any(part.values)):
        begins, ends = ends, [end + value for end, value in zip(ends, part.values)]
        yield part, begins, ends


def draw_upright(axes, picture: Picture) -> None:
    """Bars are cut where the axis ends; the time of each stands above it."""
    bars, most = range(len(picture.names)), picture.most or inf
    for part, begins, ends in stacked(picture.parts):
        low, high = (np.minimum(values, most) for values in (begins, ends))
        look: dict[str, Any] = {"color": part.colour, "label": part.name}
        if len(bars) < MOST_BARS:
            axes.bar(bars, high - low, bottom=low, width=0.8, **look)
        else:  # as one shape; `stairs` asks each line for its bounds
            sides = (np.append(values, values[-1]) for values in (low, high))
            edges = [place - 0.5 for place in range(len(bars) + 1)]
            shape = axes.fill_between(edges, *sides, step="post", linewidth=0, **look)
            shape.sticky_edges.y.append(0)
    if picture.most:
        axes.set_ylim(0, 1.4 * picture.most)
    near = -(-NOTE * len(bars) // (picture.size[0] - LEGEND))
    marked = [place for place in bars if picture.notes and picture.notes[place]]
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
                color=pictures.ALERT,
            )
    places = bars[:: max(1, -(-len(bars) // MOST_NAMES))]
    axes.set_xticks(places, [picture.names[place] for place in places])
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.01 if len(bars) > 12 else 0.05)
    axes.set(ylabel=picture.head, xlabel=picture.along, title=picture.title)
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
    rows = min(len(picture.names), MOST_ROWS)
    ends, left = [0.0] * rows, len(picture.names) - rows
    first = [part._replace(values=part.values[:rows]) for part in picture.parts]
    for part, begins, ends in stacked(first):
        look: dict[str, Any] = {"color": part.colour, "label": part.name}
        axes.barh(range(rows), part.values, left=begins, height=0.72, **look)
    for place, (end, note) in enumerate(zip(ends, picture.notes or map(time_text, ends))):
        at = {"textcoords": "offset points", "va": "center", "fontsize": 9}
        axes.annotate(note, (end, place), (4, 0), **at)
    names = [units.shortened(units.visible(name), LONGEST_NAME) for name in picture.names[:rows]]
    axes.set_yticks(range(rows), names)
    axes.set(
        title=picture.title + (f" ({left:,} more rows)" if left else ""),
        xlim=(0, (1.5 if picture.notes else 1.22) * max(ends) or 1),
        ylim=(rows - 0.4, -0.6),
        xlabel=picture.head,
    )
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    time_axis(axes.xaxis)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


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


MOST_LINES, MOST_PANELS, ACROSS = 5, 6, 3
PANEL_WIDTH, PANEL_HEIGHT, BESIDE = 3.2, 3.0, 2.4  # of one of several panels
STYLES = ("-", "--", ":", "-.")  # of lines of one colour
PERCENTILES = ((50, "median", 1, "-"), (95, "95 %", 20, "--"), (99, "99 %", 100, ":"))
MOST_FIELDS, TICKS = 512, 12  # of a map; larger jobs are drawn in blocks of ranks
Panels = Dict[str, Dict[str, "list[Row]"]]  # by communicator and call; a line is by size


class Drawing(NamedTuple):
    """size: in inches."""

    size: tuple[float, float]
    draw: Callable[[Any], None]


def draw_lines(panels: Panels, axes) -> None:
    """All panels have the same axes, and each call the same look in all of them."""
    shown = [row for lines in panels.values() for line in lines.values() for row in line]
    looks: dict[str, tuple[str, str]] = {}
    for name in by_time((name_of(row), row) for row in shown):
        alike = sum(pictures.of_call(name) == colour for colour, _ in looks.values())
        looks[name] = pictures.of_call(name), STYLES[alike % len(STYLES)]
    count, across = len(panels), min(len(panels), ACROSS)
    figure = axes.figure
    axes.remove()
    grid = figure.subplots(-(-count // across), across, sharex=True, sharey=True, squeeze=False)
    for place, (panel, title) in enumerate(zip_longest(grid.flat, panels)):
        if title is None:
            panel.remove()
            continue
        head = "" if count > 1 else "Latency by message size: "
        panel.set_title(f"{head}{units.shortened(title, 40)}", fontsize=9 if not head else None)
        for name, line in panels[title].items():
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


def lines_of(rows: Iterable[Row]) -> Drawing | None:
    """Among the rows that have a place on the axis of sizes, those with the most time, the largest
    first."""
    largest = by_time((units.visible(row.communicator), row) for row in rows if place_of(row))
    panels = {
        title: {
            name: sorted(line, key=place_of)
            for name, line in islice(
                by_time((name_of(row), row) for row in own).items(), MOST_LINES
            )
        }
        for title, own in islice(largest.items(), MOST_PANELS)
    }
    across, down = min(len(panels), ACROSS), -(-len(panels) // ACROSS)
    size = (PANEL_WIDTH * across + BESIDE, PANEL_HEIGHT * down) if across > 1 else (8.0, 4.5)
    return Drawing(size, partial(draw_lines, panels)) if panels else None


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


def histogram_of(rows: Sequence[Row]) -> Drawing | None:
    return Drawing((8.0, 4.5), partial(draw_histogram, rows)) if rows else None


def draw_histogram(rows: Sequence[Row], axes) -> None:
    """Percentiles that there are calls enough for are lines, named below the title so that they
    cannot run into each other."""
    low = [max(row.low_ns, LEAST_NS) for row in rows]
    axes.bar(
        low,
        [row.density for row in rows],
        [row.high_ns - left for row, left in zip(rows, low)],
        align="edge",
        color=pictures.of_call(rows[0].call),
        edgecolor="white",
        linewidth=0.6,
    )
    axes.set_xscale("log")
    if rows[-1].high_ns < 2 * low[0]:  # a bucket or two are no picture of their own
        axes.set_xlim(low[0] / 2, 2 * rows[-1].high_ns)
    axes.set_title(histogram_title(rows), pad=26)
    axes.set(xlabel="duration (logarithmic)", ylabel="calls per octave (doubling of the duration)")
    axes.grid(axis="x", visible=False)
    time_axis(axes.xaxis, is_log=True)
    buckets = [(row.low_ns, row.high_ns, row.count) for row in rows]
    for percent, name, fewest, style in PERCENTILES:
        if sum(row.count for row in rows) >= fewest:
            at_ns = of_buckets(buckets, percent, rows[0].low_ns, rows[-1].high_ns)
            label = f"{name}: {time_text(at_ns)}"
            axes.axvline(at_ns, color="#333333", linestyle=style, linewidth=1.2, label=label)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2, borderpad=0)


def histogram_title(rows: Sequence[Row]) -> str:
    """MPI_Allreduce of 4 MiB: 1,200 calls."""
    first, count = rows[0], sum(row.count for row in rows)
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


def map_of(rows: Sequence[Row], world_size: int, quantity: str) -> Drawing | None:
    """Pairs of the job's ranks; quantity: bytes or count."""
    return Drawing((6.6, 5.4), partial(draw_map, rows, world_size, quantity)) if rows else None


def draw_map(rows: Sequence[Row], world_size: int, quantity: str, axes) -> None:
    """Pairs that exchange nothing stay empty."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    block = -(-world_size // MOST_FIELDS) or 1
    width, last = -(-world_size // block), max(world_size - 0.5, 0.5)
    amounts, (what, show) = (
        np.zeros((width, width)),
        {
            "count": ("messages", units.count),
            "bytes": ("volume", units.volume),
        }[quantity],
    )
    for row in rows:
        amounts[row.sender // block, row.receiver // block] += getattr(row, quantity)
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
    # powers of two apart, as ranks fill hosts
    apart = 1 << (-(-world_size // TICKS) - 1).bit_length()
    ticks = [*range(0, world_size, apart)]
    axes.set(
        xlabel="receiver (world rank)",
        ylabel="sender (world rank)",
        xticks=ticks,
        yticks=ticks,
        title=f"Point-to-point {what}",
        facecolor="#fcfdfe",  # also in dark mode: darker is more
    )
    axes.grid(visible=False)


Measures = Mapping[str, "Sequence[Compared]"]  # by name
MARKERS = "o^sD"  # sides differ without colour, too


def marks_of(answers: Comparison, measures: Measures) -> Drawing | None:
    """Measures of a comparison, each with a row for each side but the first. Left is the value of
    each run; right each change with its interval, on one scale for all, which draws large changes
    closer together: the inverse hyperbolic sine of the logarithm. A filled mark is a difference
    beyond chance."""
    size = 9.5, 0.5 + len(measures) * (0.75 + 0.22 * len(answers.sides))
    return Drawing(size, partial(draw_marks, answers, measures)) if measures else None


def draw_marks(answers: Comparison, measures: Measures, axes) -> None:
    figure = axes.figure
    axes.remove()
    grid = figure.subplots(len(measures), 2, squeeze=False)
    rows = [row for own in measures.values() for row in own]
    known = [each for row in rows for each in (row.change, row.low, row.high) if each is not None]
    same = log1p(answers.rules.min_effect)
    far = max([2 * same, *(abs(log1p(each)) for each in known)])
    for (runs, changes), (name, own) in zip(grid, measures.items()):
        draw_measure(answers, runs, changes, own)
        runs.set_title(units.shortened(name, 88), fontsize=10)
        changes.axvspan(-same, same, color=pictures.OUTSIDE)
        changes.set_xscale("asinh", linear_width=same)
        changes.set(yticks=[], xlim=(-1.1 * far, 1.1 * far), ylim=runs.get_ylim())
        changes.set_xticks([-far, -same, 0, same, far])
        changes.set_xticks([], minor=True)
        changes.xaxis.set_major_formatter(lambda x, _: units.change(expm1(x)) if x else "same")


def draw_measure(answers: Comparison, runs, changes, rows: Sequence[Compared]) -> None:
    sides = [rows[0].reference, *(row.side for row in rows)]
    samples = [rows[0].samples[0], *(row.samples[1] for row in rows)]
    known = [value for own in samples for value in own if value is not None]
    for line, (values, row) in enumerate(zip(samples, [None, *rows])):
        look: dict[str, Any] = {"color": pictures.SIDES[line % 4], "marker": MARKERS[line % 4]}
        runs.plot(values, [line] * len(values), linestyle="", markerfacecolor="none", **look)
        if row and row.change is not None:
            if row.low is not None and row.high is not None:
                span = [log1p(row.low), log1p(row.high)]
                changes.plot(span, [line] * 2, color=look["color"], linewidth=2)
            is_found = not answers.refused and row.difference is not None
            inside = look["color"] if is_found else pictures.PAPER
            changes.plot([log1p(row.change)], [line], markerfacecolor=inside, **look)
    runs.set_xscale("log" if known and min(known) > 0 else "linear")
    ends = sorted({min(known), max(known)}) if known else []
    runs.set_xticks(ends, [time_text(end) for end in ends])
    runs.set_xticks([], minor=True)
    names = [units.shortened(side, 15) for side in sides]
    runs.set_yticks(range(len(sides)), names)
    runs.set_ylim(len(sides) - 0.5, -0.5)
