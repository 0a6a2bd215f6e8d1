"""One row per communicator, the same on all its ranks: the label that other commands show and take
with --communicator, its size and world ranks, the call that created it and its parent, what it is
used for as far as that can be recognized (the world, replicas, tensor-parallel groups, pipeline
neighbours, a master or server with its workers, control, I/O), and its traffic. A name that says
what it is for (data, tensor, dp, tp), set with MPI_Comm_set_name, decides between replicas and
tensor-parallel groups; otherwise the sampled calls do. Time is that of the calls on the host;
NCCL's operations on the device are apart. Members of NCCL's communicators are known as far as their
ranks were read. --plot draws time and volume of each.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..base import units
from ..base.field import Field, shown, telling
from ..base.query import Row
from ..display import tables
from ..plots import row_bars as plot
from ..roles import roles
from ..roles.communicator_rows import COMMUNICATOR, communicator_rows
from . import Command, common

NOTHING = "this run has no communicator that fits the filters"


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False, with_samples=True)
    rows = communicator_rows(run.connection, roles.of_run(run.connection, roles.roles))
    drawn = units.counted(len(rows), "communicator")
    common.answer(
        arguments, rows, COMMUNICATOR, lambda: print(tables.text_table(columns_of(rows), rows)),
        lambda: NOTHING, lambda: (run, plot, picture(rows), drawn),
    )


def picture(rows: Sequence[Row]) -> plot.Picture | None:
    """Communicators with the most time come first."""
    if not rows:
        return None
    shown = sorted(rows, key=lambda row: -max(row.total_ns, row.device_ns or 0))
    names = [f"{row.communicator} ({row.role})" if row.role else row.communicator for row in shown]
    libraries = (("mpi", "MPI", plot.KINDS[0]), ("nccl", "NCCL, on the host", plot.KINDS[1]))
    times, volumes = (
        [
            plot.Part(
                name, colour, [getattr(row, key) * (row.library == library) for row in shown]
            )
            for library, name, colour in libraries
        ]
        for key in ("total_ns", "volume_bytes")
    )
    panels = [
        plot.Panel("time of calls, all ranks", "time", times),
        plot.Panel("volume", "bytes", volumes),
    ]
    if any(row.device_ns for row in shown):
        device_ns = [row.device_ns or 0 for row in shown]
        on_device = plot.Part("NCCL, on the device", plot.KINDS[2], device_ns)
        panels.append(plot.Panel("time on the device", "time", [on_device]))
    return plot.Picture("Traffic by communicator", names, panels)


def columns_of(rows: Sequence[Row]) -> list[Field]:
    fields = shown(
        COMMUNICATOR,
        "communicator size members role constructor parent count volume_bytes total_ns device_ns "
        "top_call identity",
    )
    return telling(fields, rows, "device_ns")


COMMANDS = {"communicators": Command(
    __doc__, common.DRAWN_BY_MEMORY_KIND, run,
    (("The traffic of each communicator", "hvprof-report communicators RUN"),),
    ("ranks", "sizes"),
)}
