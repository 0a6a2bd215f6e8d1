"""Calls by the size classes of hvprof, over the run and in a step."""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.bins import hvprof_classes
from ..run.traffic_class import traffic_classify

SQL = query.beside(__file__)


class HvprofRow(NamedTuple):
    """A call in one of hvprof's size classes. Figures of a step are means over the given steps and
    their ranks; null: none are given, or not timed."""

    fusion: str
    library: str
    call: str
    family: str
    traffic: str
    rank: int | None
    bytes_low: int
    bytes_high: int | None
    ranks: int
    count: int  # type: ignore[assignment]  # hides tuple.count
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
    calls_per_step: float | None
    bytes_per_step: float | None
    time_per_step_ns: float | None


def hvprof_rows(
    connection: Connection,
    fusion: str,
    per_rank: bool = False,
    steps: Iterable[tuple[int, int, int]] = (),
) -> list[HvprofRow]:
    """steps: world_rank, begin_ns, end_ns of those in which all calls are sampled."""
    traffic_classify(connection)
    SQL.run(connection, "hvprof_class")
    connection.executemany("INSERT OR IGNORE INTO hvprof_class VALUES (?, ?)", hvprof_classes())
    connection.executemany("INSERT INTO hvprof_step VALUES (?, ?, ?)", steps)
    return SQL.ask(connection, "hvprof", HvprofRow, fusion=fusion, per_rank=per_rank)
