"""Messages between pairs of ranks."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query, units
from ..base.field import Field, Row, row_type

SQL = query.beside(__file__)


def peer_name(rank: int | None) -> str:
    if rank is None:
        return "unknown"
    return "outside" if rank < 0 else str(rank)


PEER = (
    Field(
        "sender",
        "world ranks, also for NCCL's messages; -1: outside the job; null: the peer in NCCL is not "
        "known, because its database was not read",
        "from", peer_name,
    ),
    Field("receiver", "", "to", peer_name),
    Field(
        "count",
        "messages and bytes, as the sender counted them; with `--received` as the receiver counted "
        "them",
        "messages",
    ),
    Field("bytes", "", "volume", units.volume),
    Field("time_ns", "see table `peer`"),
    Field("rma_count", "those of `count` that are RMA calls, which table `peer` has like sends"),
)
PeerRow = row_type("PeerRow", PEER)


def peer_rows(connection: Connection, received: bool = False) -> list[Row]:
    return SQL.ask(connection, "peers", PeerRow, received=received)
