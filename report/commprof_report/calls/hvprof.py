"""Calls by the size classes of hvprof."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.bins import hvprof_classes

SQL = query.beside(__file__)


class HvprofRow(NamedTuple):
    """A call in one of hvprof's size classes."""

    fusion: str
    library: str
    call: str
    family: str
    rank: int | None
    bytes_low: int
    bytes_high: int | None
    ranks: int
    count: int
    sizes: int
    smallest_bytes: int
    largest_bytes: int
    message_bytes: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: float
    p99_ns: float | None
    max_ns: int
    is_start: int
    share_of_call: float | None
    measure: str


def hvprof_rows(connection: Connection, fusion: str, per_rank: bool = False) -> list[HvprofRow]:
    SQL.run(connection, "hvprof_class")
    connection.executemany("INSERT OR IGNORE INTO hvprof_class VALUES (?, ?)", hvprof_classes())
    return SQL.ask(connection, "hvprof", HvprofRow, fusion=fusion, per_rank=per_rank)
