"""Provenance of a run: program, host, launcher, settings."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class FactRow(NamedTuple):
    key: str
    value: str
    ranks: int
    first_rank: int


def fact_rows(connection: Connection) -> list[FactRow]:
    return SQL.ask(connection, "facts", FactRow)
