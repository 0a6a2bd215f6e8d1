"""The histogram of a call's durations."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from sqlite3 import Connection

from ..base.columns import np, summed
from ..base.field import Field, Row, row_type
from ..run.selection import cells_of

LEAST_NS = 8  # drawn as the lower bound of the first bucket, which has none on a logarithmic axis


LATENCY = (  # buckets have different widths on a logarithmic axis
    Field("call", "the call and sizes shown (null: no upper bound)"),
    Field("bytes_low", ""),
    Field("bytes_high", ""),
    Field("low_ns", "bounds of the bucket; the last bucket ends at the maximum duration", "from"),
    Field("high_ns", "", "to"),
    Field("count", "calls in the bucket; over all calls shown", "count"),
    Field("share", "", "share"),
    Field("cumulative_share", "calls in this bucket and below, over all", "up to here"),
    Field(
        "measure",
        "what the durations measure, see [Words](#words); `completion` of a call that starts "
        "operations, as far as some have completed",
    ),
    Field(
        "density",
        "calls per octave: count / log2(high_ns / low_ns), with 8 ns as low_ns of the first "
        "bucket. The bars of the text and the picture have this height",
    ),
)
LatencyRow = row_type("LatencyRow", LATENCY)


def latency_rows(
    connection: Connection, call: str, low: int | None, high: int | None, measure: str = "call"
) -> list[Row]:
    """One row per bucket in use. high: of a bucket without a bound, the longest duration."""
    cells = cells_of(connection)
    flags = cells.is_in("call", call) & cells.is_in("timed", measure)
    flags &= cells.bytes_low >= (low or 0)
    if high is not None:
        flags &= cells.bytes_high <= high
    found = summed(cells.histogram, np.where(flags, 0, -1), 1)
    low_ns, high_ns = (bounds[found.bucket] for bounds in (found.low_ns, found.high_ns))
    high_ns = np.where(high_ns, high_ns, cells.max_ns[flags].max(initial=0))
    whole = found.count.sum()
    rows = zip(
        low_ns.tolist(), high_ns.tolist(), map(int, found.count.tolist()),
        (found.count / whole).tolist(), (np.cumsum(found.count) / whole).tolist(),
    )
    made = (LatencyRow(call, low, high, *values, measure, 0.0) for values in rows)
    return [row._replace(density=row.count / octaves(row)) for row in made]


def merged(rows: Sequence[Row], most: int) -> list[Row]:
    """At most so many rows: as many neighbouring ones as it takes are one."""
    size = max(1, -(-len(rows) // most))
    groups = (rows[first : first + size] for first in range(0, len(rows), size))
    found = [
        group[-1]._replace(
            low_ns=group[0].low_ns, count=sum(row.count for row in group),
            share=sum(row.share for row in group),
        )
        for group in groups
    ]
    return [row._replace(density=row.count / octaves(row)) for row in found]


def octaves(row: Row) -> float:
    """Width of a bucket. The last one ends at the longest duration, which may be
    its lower bound."""
    low_ns = max(row.low_ns, LEAST_NS)
    return log2(max(row.high_ns, low_ns + 1) / low_ns)
