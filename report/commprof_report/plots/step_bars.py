"""Time of the steps over the run, stacked by what it is spent on; outliers marked. For a file, and
as data for the page's own drawing (display/steps.js)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from ..display import colours
from ..steps.step_costs import StepRow
from .axis import time_axis
from .bars import Part, explain, shapes

SPLIT = (
    ("transfer_ns", "transfer", colours.TRANSFER),
    ("wait_ns", "waiting", colours.WAITING),
    ("unsplit_ns", "in MPI, not split", colours.UNSPLIT),
)
UNSPLIT = (("communication_ns", "in MPI", colours.UNSPLIT),)
REST = (("file_ns", "files", colours.FILES), ("outside_ns", "outside MPI", colours.OUTSIDE))
MOST_BARS = 800
HEADROOM = 1.1
OUTLIERS_SHOWN = 2.5  # x the height of usual steps; higher ones are cut there


def figure_size(rows: Sequence[StepRow]) -> tuple[float, float]:
    return 9.0, 4.0


def draw(axes, rows: Sequence[StepRow]) -> None:
    """Draws the steps; if there are many, each bar is the mean of several neighbours."""
    groups = bars(rows)
    edges = [group[0].step - 0.5 for group in groups] + [rows[-1].step + 0.5]
    shapes(axes, edges, parts_of(rows, groups))
    top = ceiling(rows)
    outliers = [row for row in rows if row.is_outlier]
    if outliers:
        heights = [min(row.step_ns, top / HEADROOM) for row in outliers]
        axes.scatter(
            [row.step for row in outliers], heights, color=colours.ALERT, marker="v", s=24,
            label="outlier", zorder=3,
        )
    axes.set_xlabel("step")
    axes.set_ylabel("time per step (mean over ranks)")
    axes.set_title("Time of the steps")
    axes.margins(x=0.01)
    time_axis(axes.yaxis)
    axes.set_ylim(0, top)
    explain(axes)


def data(rows: Sequence[StepRow], remark: Callable[[StepRow], str]) -> dict[str, object]:
    """first, last: the steps of a bar. top: where higher ones are cut. Times in nanoseconds."""
    groups = bars(rows)
    parts = [
        {
            "name": part.name, "colour": colours.variable(str(part.colour)),
            "values": [round(value) for value in part.values],
        }
        for part in parts_of(rows, groups) if any(part.values)
    ]
    remarks = [
        "; ".join(filter(None, map(remark, group))) if len(group) == 1 else "" for group in groups
    ]
    return {
        "first": [group[0].step for group in groups],
        "last": [group[-1].step for group in groups],
        "times": [round(fmean(row.step_ns for row in group)) for group in groups],
        "outliers": [any(row.is_outlier for row in group) for group in groups],
        "top": round(ceiling(rows)),
        "parts": parts,
        "remarks": remarks,
    }


def parts_of(
    rows: Sequence[StepRow], groups: Sequence[Sequence[StepRow]]
) -> list[Part]:
    """The time in each bar. Where only a background thread communicates nothing
    is known of the parts."""
    parts = (SPLIT if all(row.wait_ns is not None for row in rows) else UNSPLIT) + REST
    if any(row.communication_ns is None for row in rows):
        parts = (("step_ns", "step", colours.OUTSIDE),)
    return [
        Part(name, colour, [fmean(getattr(row, key) for row in group) for group in groups])
        for key, name, colour in parts
    ]


def bars(rows: Sequence[StepRow]) -> list[Sequence[StepRow]]:
    size = -(-len(rows) // MOST_BARS)
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def ceiling(rows: Sequence[StepRow]) -> float:
    """Outliers and the warm-up must not press all others flat."""
    usual = (
        [row.step_ns for row in rows if not row.is_outlier and not row.is_warm_up]
        or [row.step_ns for row in rows]
    )
    return HEADROOM * min(max(row.step_ns for row in rows), OUTLIERS_SHOWN * max(usual))
