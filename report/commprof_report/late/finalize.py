"""How long ranks waited in MPI_Finalize for the last one to arrive.

This is no part of the analysis of waiting: one arrival tells nobody from chance, and MPI need not
synchronize there. It is known that it did if no rank returned before the last one arrived.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..run.alignment import Alignment

SQL = query.beside(__file__)


class FinalWait(NamedTuple):
    """wait_ns: over all ranks. last_rank: None, if ranks did not wait for each other."""

    wait_ns: int = 0
    last_rank: int | None = None


def final_wait(connection: Connection, alignment: Alignment) -> FinalWait:
    rows = list(SQL.rows(connection, "finalize"))
    (ranks,) = connection.execute("SELECT count(*) FROM rank").fetchone()
    if len(rows) < max(2, ranks):
        return FinalWait()
    ends = {row.world_rank: alignment.aligned_ns(row.world_rank, row.end_ns) for row in rows}
    arrivals = {row.world_rank: ends[row.world_rank] - row.inside_ns for row in rows}
    last_rank = max(arrivals, key=arrivals.__getitem__)
    error_ns = alignment.error(list(arrivals), rows[0].end_ns).distance_ns
    waits = [arrivals[last_rank] - arrival_ns for arrival_ns in arrivals.values()]
    if min(ends.values()) + error_ns < arrivals[last_rank] or max(waits) <= error_ns:
        return FinalWait()
    return FinalWait(sum(waits), last_rank)
