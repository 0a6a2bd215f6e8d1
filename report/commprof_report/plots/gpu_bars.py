"""Stacked bars: what each GPU did with its traced time; communication apart, as hidden behind
computing and as exposed."""

from __future__ import annotations

from collections.abc import Sequence

from ..display.colours import BOTH, COMMUNICATING, COMPUTING, COPYING, IN_MPI, OUTSIDE
from ..gpu.gpu_activity import GpuDeviceRow
from .axis import time_axis
from .rank_bars import label_places

PARTS = (
    ("computing", lambda row: row.computing_ns - row.hidden_ns, COMPUTING),
    ("computing and communicating", lambda row: row.hidden_ns, BOTH),
    ("exposed communication", lambda row: row.exposed_ns, COMMUNICATING),
    ("only copying", lambda row: row.only_copying_ns, COPYING),
    ("idle, in MPI", lambda row: row.starved_ns, IN_MPI),
    ("idle", lambda row: row.idle_ns - row.starved_ns, OUTSIDE),
)


def figure_size(rows: Sequence[GpuDeviceRow]) -> tuple[float, float]:
    return min(max(8.0, 5 + 0.12 * len(rows)), 16.0), 4.5


def draw(axes, rows: Sequence[GpuDeviceRow]) -> None:
    places = range(len(rows))
    below = [0.0] * len(rows)
    for label, part, colour in PARTS:
        heights = [part(row) for row in rows]
        if not any(heights):
            continue
        axes.bar(
            places, heights, bottom=below, color=colour, label=label,
            width=0.8 if len(rows) < 50 else 1,
        )
        below = [low + height for low, height in zip(below, heights)]
    several = len({row.rank for row in rows}) < len(rows)
    label_places(axes, [f"{row.ranks}:{row.device}" if several else row.ranks for row in rows])
    axes.set_ylabel("traced time")
    axes.set_xlabel("rank:GPU" if several else "rank")
    axes.grid(axis="x", visible=False)
    axes.set_title("What the GPUs did")
    time_axis(axes.yaxis)
    handles, names = axes.get_legend_handles_labels()
    # in the order of the stack
    axes.legend(handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))
