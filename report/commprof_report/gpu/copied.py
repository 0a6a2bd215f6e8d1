"""The volume that GPUs copied while they were traced, by direction."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class CopiedRow(NamedTuple):
    """The copies of the GPUs in one direction, while they were traced."""

    copy: str
    count: int  # type: ignore[assignment]  # hides tuple.count
    volume_bytes: int
    total_ns: int


def copied_rows(connection: Connection) -> list[CopiedRow]:
    return SQL.ask(connection, "copied", CopiedRow)
