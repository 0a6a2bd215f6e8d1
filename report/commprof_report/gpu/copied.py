"""What GPUs copied, by direction, while they were traced."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class CopiedRow(NamedTuple):
    """What the GPUs copied in one direction, while they were traced."""

    copy: str
    count: int
    volume_bytes: int
    total_ns: int


def copied_rows(connection: Connection) -> list[CopiedRow]:
    return SQL.ask(connection, "copied", CopiedRow)
