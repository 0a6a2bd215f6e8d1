"""All counters in one table of names and values, as people stack those of several runs."""

from __future__ import annotations

from sqlite3 import Connection, Cursor

from ..base import query

SQL = query.beside(__file__)


def rows(connection: Connection) -> Cursor:
    """The run must have views (run/views.py)."""
    return SQL.run(connection, "long")
