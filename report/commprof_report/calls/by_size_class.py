"""Calls by the size classes of hvprof, over the run and in a step."""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection

from ..base import query
from ..base.bins import hvprof_classes
from ..base.query import Row, row_type
from ..run.traffic_class import traffic_classify

SQL = query.beside(__file__)


# A call in one of hvprof's size classes. Figures of a step are means over the given steps and
# their ranks; null: none are given, or not timed.
HvprofRow = row_type(
    "HvprofRow",
    (
        "fusion", "library", "call", "family", "traffic", "rank", "bytes_low", "bytes_high",
        "ranks", "count", "sizes", "smallest_bytes", "largest_bytes", "message_bytes", "total_ns",
        "mean_ns", "min_ns", "p50_ns", "p99_ns", "max_ns", "is_start", "share_of_call", "measure",
        "calls_per_step", "bytes_per_step", "time_per_step_ns",
    ),
)


def hvprof_rows(
    connection: Connection,
    fusion: str,
    per_rank: bool = False,
    steps: Iterable[tuple[int, int, int]] = (),
) -> list[Row]:
    """steps: world_rank, begin_ns, end_ns of those in which all calls are sampled."""
    traffic_classify(connection)
    SQL.run(connection, "hvprof_class")
    connection.executemany("INSERT OR IGNORE INTO hvprof_class VALUES (?, ?)", hvprof_classes())
    connection.executemany("INSERT INTO hvprof_step VALUES (?, ?, ?)", steps)
    return SQL.ask(connection, "hvprof", HvprofRow, fusion=fusion, per_rank=per_rank)
