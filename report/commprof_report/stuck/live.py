"""The state of ranks at one time, for a job that may still run."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query
from ..base.query import Row

SQL = query.beside(__file__)


def live_rows(connection: Connection) -> list[Row]:
    return list(SQL.rows(connection, "live"))
