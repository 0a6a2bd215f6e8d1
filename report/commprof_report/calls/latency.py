"""The histogram of a call's durations."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class LatencyRow(NamedTuple):
    call: str
    bytes_low: int | None
    bytes_high: int | None
    low_ns: int
    high_ns: int
    count: int
    share: float
    cumulative_share: float
    measure: str


class DominatingRow(NamedTuple):
    call: str
    bytes_low: int
    bytes_high: int | None
    measure: str


def latency_rows(connection: Connection, call: str, low: int | None, high: int | None, measure: str = "call") -> list[LatencyRow]:
    return SQL.ask(connection, "latency", LatencyRow, call=call, bytes_low=low, bytes_high=high, measure=measure)


def dominating_size(connection: Connection, call: str | None = None, completion: bool = False) -> DominatingRow | None:
    rows = SQL.ask(connection, "dominating", DominatingRow, call=call, completion=completion)
    return rows[0] if rows else None
