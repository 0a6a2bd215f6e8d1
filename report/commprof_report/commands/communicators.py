"""The communicators of the run, their members and their traffic.

One row per communicator, the same on all its ranks: the label that other commands show and take
with --communicator, its size and world ranks, the call that created it and its parent, what it is
used for as far as that can be recognized (the world, replicas, tensor-parallel groups, pipeline
neighbours, a master or server with its workers, control, I/O), and its traffic. A name that says
what it is for (data, tensor, dp, tp), set with MPI_Comm_set_name, decides between replicas and
tensor-parallel groups; otherwise the sampled calls do. Time is that of the calls on the host;
NCCL's operations on the device are apart. Members of NCCL's communicators are known as far as their
ranks were read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..base import units
from ..base.members import members_shown
from ..display import tables
from ..display.tables import Column, volume_column
from ..roles import roles
from ..roles.communicator_rows import CommunicatorRow, communicator_rows
from ..roles.world import world_of
from . import common

EXAMPLES = (("The traffic of each communicator", "hvprof-report communicators RUN"),)
SEE_ALSO = ("ranks", "sizes")
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser, by_memory_kind=True)


def run(arguments: argparse.Namespace) -> None:
    connection = common.open_selected(
        arguments, with_histograms=False, with_samples=True
    ).connection
    rows = communicator_rows(connection, roles.roles(world_of(connection)))
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, rows, CommunicatorRow._fields)
    elif not rows:
        print("this run has no communicator that fits the filters")
    else:
        print(tables.text_table(columns_of(rows), rows))


def columns_of(rows: Sequence[CommunicatorRow]) -> list[Column]:
    return [
        column for column in COLUMNS
        if column.head != "on device" or any(row.library == "nccl" for row in rows)
    ]
