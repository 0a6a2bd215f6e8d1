"""The volume that GPUs copied while they were traced, by direction."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query

SQL = query.beside(__file__)


def copied_rows(connection: Connection) -> list[query.Row]:
    return list(SQL.rows(connection, "copied"))
