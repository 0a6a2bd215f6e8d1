"""Tables of a run, with the columns that a query reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence


def stored(**tables: str | Sequence[Mapping[str, object]]) -> sqlite3.Connection:
    """The rows of each table; if it has none, its columns."""
    connection = sqlite3.connect(":memory:")
    for name, rows in tables.items():
        columns = rows.split() if isinstance(rows, str) else list(rows[0])
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        places = ", ".join("?" for _ in columns)
        for row in rows if not isinstance(rows, str) else ():
            connection.execute(f"INSERT INTO {name} VALUES ({places})", tuple(row.values()))
    return connection
