"""The communicators of the run, their members and their traffic.

One row per communicator, the same on all its ranks: the label that other commands show and take
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
from ..base.members import members_shown
from ..base.query import Row
from ..display import tables
from ..display.tables import Column, volume_column
from ..plots import row_bars as plot
from ..roles import roles
from ..roles.communicator_rows import CommunicatorRow, communicator_rows
from . import common

EXAMPLES = (("The traffic of each communicator", "hvprof-report communicators RUN"),)
SEE_ALSO = ("ranks", "sizes")
NOTHING = "this run has no communicator that fits the filters"
COLUMNS = (
    Column("communicator", lambda row: units.shortened(row.communicator, 32), False),
    Column("size", lambda row: units.count(row.size)),
    Column("world ranks", lambda row: units.shortened(members_shown(row.members), 24), False),
    Column("role", lambda row: row.role or "", False),
    Column("made by", lambda row: row.constructor.replace("MPI_", ""), False),
    Column("from", lambda row: units.shortened(row.parent or "", 20), False),
    Column("calls", lambda row: units.count(row.count)),
    volume_column("volume", "volume_bytes"),
    Column("time", lambda row: units.duration(row.total_ns)),
    Column("on device", lambda row: units.duration(row.device_ns)),
    Column("most time in", lambda row: row.top_call or "", False),
    Column("identity", lambda row: row.identity, False),
)


OPTIONS = common.DRAWN_BY_MEMORY_KIND


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False, with_samples=True)
    rows = communicator_rows(run.connection, roles.of_run(run.connection, roles.roles))
    if arguments.plot:
        drawn = units.counted(len(rows), "communicator")
        common.picture_save(arguments, run, plot, picture(rows), drawn, NOTHING)
    common.answer(
        arguments, rows, CommunicatorRow._fields,
        lambda: print(tables.text_table(columns_of(rows), rows)), lambda: NOTHING,
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


def columns_of(rows: Sequence[Row]) -> list[Column]:
    return [
        column for column in COLUMNS
        if column.head != "on device" or any(row.library == "nccl" for row in rows)
    ]
