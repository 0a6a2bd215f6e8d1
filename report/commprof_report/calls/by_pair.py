"""Messages between pairs of ranks."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class PeerRow(NamedTuple):
    sender: int | None
    receiver: int | None
    count: int  # type: ignore[assignment]  # hides tuple.count
    bytes: int
    time_ns: int
    rma_count: int = 0


def peer_rows(connection: Connection, received: bool = False) -> list[PeerRow]:
    return SQL.ask(connection, "peers", PeerRow, received=received)
