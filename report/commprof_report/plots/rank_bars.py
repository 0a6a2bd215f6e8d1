"""Stacked bars: each rank's time inside MPI, by call; without MPI that of NCCL's operations."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import units
from ..calls.by_rank import RankTimeRow
from ..display.colours import of_call
from .axis import time_axis

MOST_CALLS = 6
MOST_BARS = 50
OTHERS = "other calls"


def figure_size(rows: Sequence[RankTimeRow]) -> tuple[float, float]:
    ranks = len({row.rank for row in rows})
    return min(max(8.0, 5 + 0.12 * ranks), 16.0), 4.5


def draw(axes, rows: Sequence[RankTimeRow]) -> None:
    ranks = sorted({row.rank for row in rows})
    library, timed = (rows[0].library.upper(), rows[0].measure) if rows else ("MPI", "call")
    below = [0.0] * len(ranks)
    for call, times in stacks(rows, ranks).items():
        below = bars(axes, times, below, color=of_call(call), label=units.visible(call))
    label_ranks(axes, ranks)
    axes.set_ylabel(
        "time on the device" if timed == "device" else f"time in {library}, all threads"
    )
    axes.set_xlabel("rank")
    axes.grid(axis="x", visible=False)
    axes.set_title(
        f"Time of {library}'s operations by rank" if timed == "device"
        else f"Time in {library} by rank"
    )
    time_axis(axes.yaxis)
    if rows:
        handles, names = axes.get_legend_handles_labels()
        # in the order of the stack
        axes.legend(handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))


def stacks(rows: Sequence[RankTimeRow], ranks: Sequence[int]) -> dict[str, list[int]]:
    """Time by call, then by rank; rows come with the call that took most first, and the rest is one
    stack."""
    calls = list(dict.fromkeys(row.call for row in rows))
    named = calls if len(calls) <= MOST_CALLS + 1 else calls[:MOST_CALLS]
    times: dict[str, dict[int, int]] = {}
    for row in rows:
        of_call = times.setdefault(row.call if row.call in named else OTHERS, {})
        of_call[row.rank] = of_call.get(row.rank, 0) + row.total_ns
    return {call: [of_call.get(rank, 0) for rank in ranks] for call, of_call in times.items()}


def bars(axes, heights: Sequence[float], below: Sequence[float], **style: str) -> list[float]:
    """Draws a bar for each rank, those of many ranks as one shape; gives their upper ends."""
    upto = [low + height for low, height in zip(below, heights)]
    if len(heights) < MOST_BARS:
        axes.bar(range(len(heights)), heights, bottom=below, width=0.8, **style)
    else:
        edges = [place - 0.5 for place in range(len(heights) + 1)]
        axes.stairs(upto, edges, baseline=below, fill=True, **style)
    return upto


def label_ranks(axes, ranks: Sequence[int]) -> None:
    label_places(axes, [str(rank) for rank in ranks])


def label_places(axes, names: Sequence[str]) -> None:
    step = max(1, -(-len(names) // 24))
    places = range(0, len(names), step)
    axes.set_xticks(places, [names[place] for place in places])
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.01 if len(names) > 12 else 0.05)
