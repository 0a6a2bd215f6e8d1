"""The histogram of a call's durations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import log2
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)

BUCKETS_IN_OCTAVE = 8
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


def latency_rows(
    connection: Connection, call: str, low: int | None, high: int | None, measure: str = "call"
) -> list[LatencyRow]:
    rows = SQL.ask(
        connection, "latency", LatencyRow, call=call, bytes_low=low, bytes_high=high,
        measure=measure,
    )
    return [row._replace(density=row.count / octaves(row)) for row in rows]


def merged(rows: Sequence[LatencyRow], most: int) -> list[LatencyRow]:
    """At most so many rows: 2, 4, 8, ... neighbouring buckets are one."""
    size, groups = 1, [[row] for row in rows]
    while len(groups) > most:
        size *= 2
        groups = [list(own) for _, own in groupby(rows, lambda row: place_of(row.low_ns) // size)]
    return [_merged(group, size) for group in groups] if size > 1 else list(rows)


def place_of(low_ns: int) -> int:
    """Number of the bucket that begins there."""
    octave = max(low_ns, LEAST_NS).bit_length() - 1
    return BUCKETS_IN_OCTAVE * octave + (low_ns * BUCKETS_IN_OCTAVE >> octave) % BUCKETS_IN_OCTAVE


def begin_of(place: int) -> int:
    octave, part = divmod(place, BUCKETS_IN_OCTAVE)
    return (BUCKETS_IN_OCTAVE + part << octave) // BUCKETS_IN_OCTAVE


def _merged(rows: Sequence[LatencyRow], size: int) -> LatencyRow:
    """The first bucket begins at 0; the last one ends at the longest duration."""
    first = place_of(rows[0].low_ns) // size * size
    low_ns = min(begin_of(first), rows[0].low_ns)
    high_ns = max(begin_of(first + size), rows[-1].high_ns)
    count, share = sum(row.count for row in rows), sum(row.share for row in rows)
    row = rows[-1]._replace(low_ns=low_ns, high_ns=high_ns, count=count, share=share)
    return row._replace(density=count / octaves(row))


def octaves(row: LatencyRow) -> float:
    """Width of a bucket. The last one ends at the longest duration, which may be
    its lower bound."""
    low_ns = max(row.low_ns, LEAST_NS)
    return log2(max(row.high_ns, low_ns + 1) / low_ns)


def dominating_size(
    connection: Connection, call: str | None = None
) -> query.Row | None:
    rows = list(SQL.rows(connection, "dominating", call=call))
    return rows[0] if rows else None
