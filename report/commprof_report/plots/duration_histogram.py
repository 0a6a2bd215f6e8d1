"""Histogram: the density of the durations of one call at one size, and the percentiles."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Row, units
from ..base.columns import of_buckets
from ..calls.by_size import LEAST_NS
from ..display.colours import of_call
from .bars import time_axis, time_text

# percent, name, fewest calls, style of line
MARKS = ((50, "median", 1, "-"), (95, "95 %", 20, "--"), (99, "99 %", 100, ":"))


def figure_size(rows: Sequence[Row]) -> tuple[float, float]:
    return 8.0, 4.5


def draw(axes, rows: Sequence[Row]) -> None:
    """Percentiles that there are calls enough for are lines, named below the title so that they
    cannot run into each other."""
    low = [max(row.low_ns, LEAST_NS) for row in rows]
    widths = [row.high_ns - left for row, left in zip(rows, low)]
    axes.bar(
        low, [row.density for row in rows], widths, align="edge", color=of_call(rows[0].call),
        edgecolor="white", linewidth=0.6,
    )
    axes.set_xscale("log")
    if rows[-1].high_ns < 2 * low[0]:  # a bucket or two are no picture of their own
        axes.set_xlim(low[0] / 2, 2 * rows[-1].high_ns)
    axes.set_xlabel("duration (logarithmic)")
    axes.set_ylabel("calls per octave (doubling of the duration)")
    axes.grid(axis="x", visible=False)
    axes.set_title(title(rows), pad=26)
    time_axis(axes.xaxis, is_log=True)
    count = sum(row.count for row in rows)
    buckets = [(row.low_ns, row.high_ns, row.count) for row in rows]
    for percent, name, _, style in (mark for mark in MARKS if count >= mark[2]):
        at_ns = of_buckets(buckets, percent, rows[0].low_ns, rows[-1].high_ns)
        label = f"{name}: {time_text(at_ns)}"
        axes.axvline(at_ns, color="#333333", linestyle=style, linewidth=1.2, label=label)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2, borderpad=0)


def title(rows: Sequence[Row]) -> str:
    """MPI_Allreduce of 4 MiB: 1,200 calls."""
    count = sum(row.count for row in rows)
    low, high = rows[0].bytes_low, rows[0].bytes_high
    sizes = "all sizes" if not low and high is None else units.size_range(low or 0, high)
    of = f" of {sizes}" if low or high or high is None else ""
    noun = {
        "device": "time on the device", "captured": "call into a CUDA graph",
        "completion": "time to completion",
    }.get(rows[0].measure, "call")
    counted = (
        units.counted(count, noun) if noun == "call" or count == 1
        else f"{units.count(count)} {noun.replace(' ', 's ', 1)}"
    )
    where = " on the host" if noun == "call" and rows[0].call.startswith("nccl") else ""
    return units.visible(f"{rows[0].call}{of}: {counted}{where}")
