"""Stacked bars: each rank's time in collectives and messages, as waiting for other ranks and as
transfer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base.field import Row
from ..base.siblings import Family
from ..display.colours import TRANSFER, WAITING
from .axis import time_axis
from .families import beneath, height
from .rank_bars import bars, label_ranks


class Picture(NamedTuple):
    """families: by the waiting of each communicator, per rank."""

    ranks: Sequence[Row]
    families: Sequence[Family]


def picture(ranks: Sequence[Row], families: Sequence[Family]) -> Picture | None:
    """None where there is neither waiting nor transfer."""
    return (
        Picture(ranks, families) if any(row.wait_ns or row.transfer_ns for row in ranks) else None
    )


def figure_size(picture: Picture) -> tuple[float, float]:
    return min(max(8.0, 5 + 0.12 * len(picture.ranks)), 16.0), 4.5 + height(picture.families)


def draw(axes, picture: Picture) -> None:
    axes, rows = beneath(axes, picture.families, "Waiting per rank, by communicator"), picture.ranks
    transfers = [float(row.transfer_ns) for row in rows]
    waits = [float(row.wait_ns) for row in rows]
    upto = bars(axes, transfers, [0.0] * len(rows), color=TRANSFER, label="transfer")
    bars(axes, waits, upto, color=WAITING, label="waiting for other ranks")
    label_ranks(axes, [row.rank for row in rows])
    axes.set_ylabel("time in collectives and messages")
    axes.set_xlabel("rank")
    axes.grid(axis="x", visible=False)
    axes.set_title("Waiting and transfer by rank")
    time_axis(axes.yaxis)
    handles, names = axes.get_legend_handles_labels()
    # in the order of the stack
    axes.legend(handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))
