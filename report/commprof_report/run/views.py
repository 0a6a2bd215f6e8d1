"""Views of a merged run for people's own queries (views.sql)."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query
from .alignment import Alignment

SQL = query.beside(__file__)

VIEWS = ("named_cell", "sizes", "percentiles", "calls", "collectives")


def views_create(connection: Connection, alignment: Alignment) -> None:
    SQL.run(connection, "views")
    connection.execute("INSERT INTO communicator_label SELECT identity, label, size, members FROM temp.run_communicator")
    connection.executemany("INSERT INTO clock_line VALUES (?, ?, ?, ?, ?)", alignment.lines())
