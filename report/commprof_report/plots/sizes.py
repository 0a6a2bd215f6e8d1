"""Lines: latency over message size, the median with its band up to the 95th and 99th percentile."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import units
from ..calls.sizes import SizeRow
from ..display.pictures import PALETTE
from .axis import size_axis, time_axis

MOST_LINES = 5


def draw(axes, rows: Sequence[SizeRow]) -> None:
    lines = lines_of(rows)
    for colour, (name, line) in zip(PALETTE, lines.items()):
        draw_line(axes, name, line, colour)
    points = [point for line in lines.values() for point in line]
    axes.set_yscale("log")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("message size")
    axes.set_ylabel("duration of a call")
    axes.set_title("Latency by message size", pad=12)
    time_axis(axes.yaxis, is_log=True)
    if points:
        size_axis(axes.xaxis, min(place_of(point) for point in points), max(place_of(point) for point in points))
        axes.plot([], [], color="#777777", linewidth=1.6, label="median")
        axes.fill_between([], [], [], color="#777777", alpha=0.30, linewidth=0, label="up to 95 %")
        axes.fill_between([], [], [], color="#777777", alpha=0.14, linewidth=0, label="up to 99 %")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def draw_line(axes, name: str, line: Sequence[SizeRow], colour: str) -> None:
    places = [place_of(point) for point in line]
    median = [point.p50_ns for point in line]
    p95, p99 = [band(point, point.p95_ns) for point in line], [band(point, point.p99_ns) for point in line]
    if len(line) == 1:  # a band needs two sizes; one gets whiskers
        axes.vlines(places, median, p99, color=colour, alpha=0.35, linewidth=5)
        axes.vlines(places, median, p95, color=colour, alpha=0.6, linewidth=5)
    axes.fill_between(places, median, p99, color=colour, alpha=0.14, linewidth=0)
    axes.fill_between(places, median, p95, color=colour, alpha=0.22, linewidth=0)
    axes.plot(places, median, color=colour, marker="o", markersize=4, linewidth=1.6, label=name)


def band(point: SizeRow, upper_ns: float | None) -> float:
    """Where the band ends: at the median, if there are too few calls for the percentile."""
    return point.p50_ns if upper_ns is None else upper_ns


def with_message(rows: Sequence[SizeRow]) -> list[SizeRow]:
    """What has a place on the axis of sizes."""
    return [row for row in rows if place_of(row)]


def lines_of(rows: Sequence[SizeRow]) -> dict[str, list[SizeRow]]:
    """The lines that took the most time; without the communicator in the name where there is but one."""
    is_one = len({row.communicator for row in with_message(rows)}) == 1
    lines: dict[str, list[SizeRow]] = {}
    for row in with_message(rows):
        lines.setdefault(name_of(row, is_one), []).append(row)
    largest = sorted(lines, key=lambda name: sum(row.total_ns for row in lines[name]), reverse=True)[:MOST_LINES]
    return {name: sorted(lines[name], key=place_of) for name in largest}


def name_of(row: SizeRow, is_one_communicator: bool) -> str:
    name = row.call if is_one_communicator else f"{row.call}, {units.shortened(row.communicator, 24)}"
    rank = "" if row.rank is None else f", rank {row.rank}"
    device = ", GPU memory" if row.memory_kind == "device" and row.library == "mpi" else ""
    timed = ", on the host" if row.library == "nccl" and row.measure != "device" else ""
    return units.visible(name + rank + device + timed)


def place_of(row: SizeRow) -> int:
    """Where a size stands on the axis; a bin without upper bound at its lower."""
    return row.bytes if row.bytes is not None else row.bytes_low
