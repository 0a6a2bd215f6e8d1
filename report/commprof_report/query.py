"""Runs the questions in sql/ and hands back named tuples."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from .errors import ReportError

HERE = Path(__file__).resolve().parent
SCHEMA_PLACES = (HERE / "schema.sql", HERE.parent.parent / "src" / "output" / "schema.sql")
MOST_SUM = (1 << 63) - 1  # what SQLite can hold as an integer
ALMOST = 0.999  # of it; a sum of floats is not exact
Row = TypeVar("Row", bound=NamedTuple)


class LargeSum:
    """SQL's sum() without an overflow: exact while SQLite can hold it, a float beyond."""

    def __init__(self) -> None:
        self.sum: int | float | None = None

    def step(self, value: int | float | None) -> None:
        if value is not None:
            self.sum = value if self.sum is None else self.sum + value

    def finalize(self) -> int | float | None:
        return self.sum if self.sum is None or abs(self.sum) <= MOST_SUM else float(self.sum)


def sums_secure(connection: sqlite3.Connection) -> None:
    """SQLite's own sum() ends a question with an error beyond 2^63; ours, which is slow, takes its place in runs that come near.
    No window may add up with sum() (Python cannot replace that one): they do with total()."""
    (largest,) = run_script(connection, "largest_sum").fetchone()
    if largest > ALMOST * MOST_SUM:
        connection.create_aggregate("sum", 1, LargeSum)


def sql_text(name: str) -> str:
    return (HERE / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def schema_text() -> str:
    """schema.sql: beside the package where it is installed, in src/output/ in the source tree."""
    for place in SCHEMA_PLACES:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise ReportError(SCHEMA_PLACES[0], "is missing; the installation is incomplete")


@lru_cache
def statements(name: str) -> list[str]:
    """The statements of sql/<name>.sql."""
    found, statement = [], ""
    for line in sql_text(name).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found


def run_script(connection: sqlite3.Connection, name: str, **parameters: object) -> sqlite3.Cursor:
    """All statements of sql/<name>.sql; the cursor of the last."""
    cursor = connection.cursor()
    for statement in statements(name):
        cursor.execute(statement, parameters)
    return cursor


def ask(connection: sqlite3.Connection, name: str, row: type[Row], **parameters: object) -> list[Row]:
    """The answer to sql/<name>.sql. Its columns are the row's fields, in order."""
    cursor = run_script(connection, name, **parameters)
    columns = tuple(column[0] for column in cursor.description)
    assert columns == row._fields, f"{name}.sql answers {columns}, not {row._fields}"
    return [row._make(values) for values in cursor]
