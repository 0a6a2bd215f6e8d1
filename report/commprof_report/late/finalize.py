"""How long ranks waited in MPI_Finalize for the last one to arrive.

This is no part of the analysis of waiting: one arrival tells nobody from chance, and MPI need not
synchronize there. It is known that it did if no rank returned before the last one arrived.
"""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query
from ..run.alignment import Alignment

SQL = query.beside(__file__)


NOBODY = 0, None


def final_wait(connection: Connection, alignment: Alignment) -> tuple[int, int | None]:
    """How long all ranks waited together, and for whom; None, if they did not wait for each
    other."""
    rows = list(SQL.rows(connection, "finalize"))
    (ranks,) = connection.execute("SELECT count(*) FROM rank").fetchone()
    if len(rows) < max(2, ranks):
        return NOBODY
    ends = {row.world_rank: alignment.aligned_ns(row.world_rank, row.end_ns) for row in rows}
    arrivals = {row.world_rank: ends[row.world_rank] - row.inside_ns for row in rows}
    last_rank = max(arrivals, key=arrivals.__getitem__)
    error_ns = alignment.error(list(arrivals), rows[0].end_ns).distance_ns
    waits = [arrivals[last_rank] - arrival_ns for arrival_ns in arrivals.values()]
    if min(ends.values()) + error_ns < arrivals[last_rank] or max(waits) <= error_ns:
        return NOBODY
    return sum(waits), last_rank
