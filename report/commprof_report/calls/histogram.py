"""The histogram of a call's durations."""

from __future__ import annotations

from math import log2
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)

LEAST_NS = 8  # drawn as the lower bound of the first bucket, which has none on a logarithmic axis


class LatencyRow(NamedTuple):
    """A bucket with its density: calls per octave of the duration. Buckets have different widths on
    a logarithmic axis."""

    call: str
    bytes_low: int | None
    bytes_high: int | None
    low_ns: int
    high_ns: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    share: float
    cumulative_share: float
    measure: str
    density: float


class DominatingRow(NamedTuple):
    call: str
    bytes_low: int
    bytes_high: int | None
    measure: str


def latency_rows(
    connection: Connection, call: str, low: int | None, high: int | None, measure: str = "call"
) -> list[LatencyRow]:
    rows = SQL.ask(
        connection, "latency", LatencyRow, call=call, bytes_low=low, bytes_high=high,
        measure=measure,
    )
    return [row._replace(density=row.count / octaves(row)) for row in rows]


def octaves(row: LatencyRow) -> float:
    """Width of a bucket. The last one ends at the longest duration, which may be
    its lower bound."""
    low_ns = max(row.low_ns, LEAST_NS)
    return log2(max(row.high_ns, low_ns + 1) / low_ns)


def dominating_size(
    connection: Connection, call: str | None = None
) -> DominatingRow | None:
    rows = SQL.ask(connection, "dominating", DominatingRow, call=call)
    return rows[0] if rows else None
