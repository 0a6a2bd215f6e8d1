"""Ranks: the state of each, and what it did."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query
from ..base.summarize import Row, row_type
from ..run.cells import cells_of
from ..run.cpu_time import cpu_times
from .views import RANK_SUMS, busiest_threads, summarize

SQL = query.beside(__file__)


def rank_rows(connection: Connection) -> list[Row]:
    cpu_times(connection)  # makes rank_core
    found = SQL.run(connection, "ranks")
    row = row_type("RankRow", (column[0] for column in found.description))
    sums = {own.rank: own._asdict() for own in summarize(cells_of(connection), RANK_SUMS)}
    busiest = busiest_threads(connection)
    threads = {
        (rank, thread): of_thread
        for rank, thread, *of_thread in connection.execute(
            "SELECT world_rank, thread, name, is_main FROM thread"
        )
    }

    def of_rank(known: Row) -> dict:
        most = busiest.get(known.rank)
        name, is_main = threads.get((known.rank, most.thread), (None, 1)) if most else (None, 1)
        mpi_ns = most.mpi_ns if most else 0
        return {
            **sums.get(known.rank, {}), "mpi_ns": mpi_ns,
            "mpi_share": mpi_ns / known.counted_ns if known.counted_ns else None,
            "mpi_thread": name, "mpi_thread_is_main": is_main,
        }

    return [known._replace(**of_rank(known)) for known in map(row._make, found)]
