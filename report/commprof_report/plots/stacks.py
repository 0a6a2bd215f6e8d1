"""Stacked bars beside each other, one a rank or GPU: what its time is spent on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base import units
from ..base.field import Row
from ..display import colours
from ..gpu.gpu_activity import GpuDeviceRow
from .axis import time_axis
from .row_bars import Part, stacked

MOST_CALLS = 6
MOST_BARS, MOST_NAMES = 50, 24
OTHERS = "other calls"
OF_GPUS = (
    ("computing", lambda row: row.computing_ns - row.hidden_ns, colours.COMPUTING),
    ("computing and communicating", lambda row: row.hidden_ns, colours.BOTH),
    ("exposed communication", lambda row: row.exposed_ns, colours.COMMUNICATING),
    ("only copying", lambda row: row.only_copying_ns, colours.COPYING),
    ("idle, in MPI", lambda row: row.starved_ns, colours.IN_MPI),
    ("idle", lambda row: row.idle_ns - row.starved_ns, colours.OUTSIDE),
)


class Picture(NamedTuple):
    """names: of the bars; axes: names of the time and of the bars."""

    title: str
    axes: tuple[str, str]
    names: Sequence[str]
    parts: Sequence[Part]


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
        own = times.setdefault(row.call if row.call in named else OTHERS, dict.fromkeys(ranks, 0))
        own[row.rank] += row.total_ns
    library, is_device = rows[0].library.upper(), rows[0].measure == "device"
    return Picture(
        f"Time of {library}'s operations by rank" if is_device else f"Time in {library} by rank",
        ("time on the device" if is_device else f"time in {library}, all threads", "rank"),
        [str(rank) for rank in ranks],
        [
            Part(units.visible(call), colours.of_call(call), [*own.values()])
            for call, own in times.items()
        ],
    )


def of_gpus(rows: Sequence[GpuDeviceRow]) -> Picture | None:
    """Communication apart, as hidden behind computing and as exposed."""
    several = len({row.rank for row in rows}) < len(rows)
    return Picture(
        "What the GPUs did", ("traced time", "rank:GPU" if several else "rank"),
        [f"{row.ranks}:{row.device}" if several else row.ranks for row in rows],
        [Part(name, colour, [*map(part, rows)]) for name, part, colour in OF_GPUS],
    ) if rows else None


def of_waits(ranks: Sequence[Row]) -> Picture | None:
    """None where there is neither waiting nor transfer."""
    parts = [
        Part("transfer", colours.TRANSFER, [float(row.transfer_ns) for row in ranks]),
        Part("waiting for other ranks", colours.WAITING, [float(row.wait_ns) for row in ranks]),
    ]
    return Picture(
        "Waiting and transfer by rank", ("time in collectives and messages", "rank"),
        [str(row.rank) for row in ranks], parts,
    ) if any(any(part.values) for part in parts) else None


def figure_size(picture: Picture) -> tuple[float, float]:
    return min(max(8.0, 5 + 0.12 * len(picture.names)), 16.0), 4.5


def draw(axes, picture: Picture) -> None:
    bars = range(len(picture.names))
    if len(bars) < MOST_BARS:
        for part, begins, _ in stacked(picture.parts):
            axes.bar(
                bars, part.values, bottom=begins, width=0.8, color=part.colour, label=part.name
            )
    else:
        shapes(axes, [place - 0.5 for place in range(len(bars) + 1)], picture.parts)
    step = max(1, -(-len(picture.names) // MOST_NAMES))
    places = range(0, len(picture.names), step)
    axes.set_xticks(places, [picture.names[place] for place in places])
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.01 if len(picture.names) > 12 else 0.05)
    axes.set_ylabel(picture.axes[0])
    axes.set_xlabel(picture.axes[1])
    axes.grid(axis="x", visible=False)
    axes.set_title(picture.title)
    time_axis(axes.yaxis)
    explain(axes)


def shapes(axes, edges: Sequence[float], parts: Sequence[Part]) -> None:
    """The bars of a part as one shape between edges."""
    for part, begins, ends in stacked(parts):
        axes.stairs(
            ends, edges, baseline=begins, fill=True, color=part.colour, label=part.name
        )


def explain(axes) -> None:
    """A legend in the order of the stack."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))
