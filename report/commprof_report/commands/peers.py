"""Who sends how much point-to-point to whom.

A matrix with a row per sender and a column per receiver, as the senders counted (with --received,
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
from ..base.options import option
from ..base.query import Row
from ..calls.by_pair import PeerRow, peer_rows
from ..display import tables
from ..display.tables import Column
from ..plots import peer_heat_map as plot
from . import common

EXAMPLES = (("A heat map", "hvprof-report peers --plot peers.png RUN"),)
SEE_ALSO = ("communicators", "pipeline")
MOST_COLUMNS = 16
MOST_PAIRS = 30


OPTIONS = (
    *common.DRAWN,
    option("--counts", action="store_true", help="numbers of messages instead of bytes"),
    option("--received", action="store_true", help="what the receivers counted"),
)


def run(arguments: argparse.Namespace) -> None:
    if arguments.bytes or arguments.communicator or arguments.region:
        raise UsageError(
            "peers", "messages between peers are not counted by size, communicator or region"
        )
    run = common.open_selected(arguments, with_histograms=False)
    rows = peer_rows(run.connection, arguments.received)
    if arguments.plot:
        matrix = plot.matrix_of(rows, run.world_size, "count" if arguments.counts else "bytes")
        messages = units.counted(sum(row.count for row in matrix.rows) if matrix else 0, "message")
        size = "" if arguments.counts else "of a byte or more "
        why_none = common.nothing_text(
            run, f"point-to-point message {size}between two ranks of the job"
        )
        common.picture_save(arguments, run, plot, matrix, messages, why_none)
    direction = "received" if arguments.received else "sent"
    common.answer(
        arguments, rows, PeerRow._fields, lambda: print_text(rows, arguments.counts),
        lambda: common.nothing_text(run, f"{direction} point-to-point message"),
    )


def print_text(rows: list[Row], counts: bool) -> None:
    receivers = ranks_of(row.receiver for row in rows)
    if len(receivers) > MOST_COLUMNS:
        print_pairs(rows, counts)
        return
    amounts = {(row.sender, row.receiver): amount(row, counts) for row in rows}
    columns = [Column("from \\ to", peer_name)]
    columns += [
        Column(peer_name(to), lambda sender, to=to: amounts.get((sender, to), "."))
        for to in receivers
    ]
    print(tables.text_table(columns, ranks_of(row.sender for row in rows)))


def ranks_of(ranks: Iterable[int | None]) -> list[int | None]:
    """In order, and who is not known last."""
    return sorted(set(ranks), key=lambda rank: (rank is None, rank))


def print_pairs(rows: list[Row], counts: bool) -> None:
    largest = sorted(rows, key=lambda row: row.count if counts else row.bytes, reverse=True)
    columns = (
        Column("from", lambda row: peer_name(row.sender)),
        Column("to", lambda row: peer_name(row.receiver)),
        Column("messages", lambda row: units.count(row.count)),
        Column("volume", lambda row: units.volume(row.bytes)),
    )
    print(tables.first_rows(columns, largest, MOST_PAIRS, " pairs; --csv has them all."))


def amount(row: Row, counts: bool) -> str:
    return units.count(row.count) if counts else units.volume(row.bytes)


def peer_name(rank: int | None) -> str:
    if rank is None:
        return "unknown"
    return "outside" if rank < 0 else str(rank)
