"""A matrix with a row per sender and a column per receiver, as the senders counted (with --received,
as the receivers did). With more than 16 receivers the text lists the largest pairs; --plot shows
all. NCCL's messages are included, by the world ranks of both sides; a peer whose database was not
read is "unknown". Messages are not counted by size or communicator here, so --bytes, --communicator
and --region are refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ..base import units
from ..base.errors import UsageError
from ..base.field import shown
from ..base.options import option
from ..base.query import Row
from ..calls.by_pair import PEER, peer_name, peer_rows
from ..display import tables
from ..display.tables import Column
from ..plots import peer_heat_map as plot
from . import Command, common

MOST_COLUMNS = 16
MOST_PAIRS = 30


def run(arguments: argparse.Namespace) -> None:
    if arguments.bytes or arguments.communicator or arguments.region:
        raise UsageError(
            "peers", "messages between peers are not counted by size, communicator or region"
        )
    run = common.open_selected(arguments, with_histograms=False)
    rows = peer_rows(run.connection, arguments.received)
    direction = "received" if arguments.received else "sent"
    size = "" if arguments.counts else "of a byte or more "

    def draw() -> tuple:
        matrix = plot.matrix_of(rows, run.world_size, "count" if arguments.counts else "bytes")
        number = sum(row.count for row in matrix.rows) if matrix else 0
        return run, plot, matrix, units.counted(number, "message")

    common.answer(
        arguments, rows, PEER, lambda: print_text(rows, arguments.counts),
        lambda: common.nothing_text(run, f"{direction} point-to-point message"), draw,
        lambda: common.nothing_text(
            run, f"point-to-point message {size}between two ranks of the job"
        ),
    )


def print_text(rows: list[Row], counts: bool) -> None:
    amount = shown(PEER, "count" if counts else "bytes")[0]
    receivers = ranks_of(row.receiver for row in rows)
    if len(receivers) > MOST_COLUMNS:
        largest = sorted(rows, key=lambda row: getattr(row, amount.key), reverse=True)
        print(tables.first_rows(shown(PEER), largest, MOST_PAIRS, " pairs; --csv has them all."))
        return
    amounts = {(row.sender, row.receiver): amount.show(row) for row in rows}
    columns = [Column("from \\ to", peer_name)]
    columns += [
        Column(peer_name(to), lambda sender, to=to: amounts.get((sender, to), "."))
        for to in receivers
    ]
    print(tables.text_table(columns, ranks_of(row.sender for row in rows)))


def ranks_of(ranks: Iterable[int | None]) -> list[int | None]:
    """In order, and who is not known last."""
    return sorted(set(ranks), key=lambda rank: (rank is None, rank))


COMMANDS = {"peers": Command(
    __doc__, (
        *common.DRAWN,
        option("--counts", action="store_true", help="numbers of messages instead of bytes"),
        option("--received", action="store_true", help="what the receivers counted"),
    ), run,
    (("A heat map", "hvprof-report peers --plot peers.png RUN"),),
    ("communicators", "pipeline"),
)}
