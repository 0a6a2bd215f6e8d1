"""Provenance of a run: program, host, launcher, settings."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query

SQL = query.beside(__file__)


def fact_rows(connection: Connection) -> list[query.Row]:
    return list(SQL.rows(connection, "facts"))
