"""Messages between pairs of ranks."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query
from ..base.query import Row, row_type

SQL = query.beside(__file__)


PeerRow = row_type(
    "PeerRow",
    (
        "sender", "receiver", "count", "bytes", "time_ns", "rma_count",
    ),
)


def peer_rows(connection: Connection, received: bool = False) -> list[Row]:
    return SQL.ask(connection, "peers", PeerRow, received=received)
