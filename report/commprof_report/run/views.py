"""Views of a merged run for people's own queries (views.sql, seen.sql)."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query
from .alignment import Alignment
from .unseen import view_text

SQL = query.beside(__file__)

VIEWS = ("named_cell", "sizes", "percentiles", "calls", "collectives", "seen")


def views_create(connection: Connection, alignment: Alignment) -> None:
    SQL.run(connection, "views")
    connection.execute(view_text())
    connection.execute(
        "INSERT INTO communicator_label SELECT identity, label, size, members FROM "
        "temp.run_communicator"
    )
    connection.executemany("INSERT INTO clock_line VALUES (?, ?, ?, ?, ?)", alignment.lines())
