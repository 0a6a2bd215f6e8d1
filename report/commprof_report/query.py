"""Runs the questions in sql/ and hands back named tuples."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from .errors import ReportError

HERE = Path(__file__).resolve().parent
SCHEMA_PLACES = (HERE / "schema.sql", HERE.parent.parent / "src" / "output" / "schema.sql")
Row = TypeVar("Row", bound=NamedTuple)


def sql_text(name: str) -> str:
    return (HERE / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def schema_text() -> str:
    """schema.sql: beside the package where it is installed, in src/output/ in the source tree."""
    for place in SCHEMA_PLACES:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise ReportError(SCHEMA_PLACES[0], "is missing; the installation is incomplete")


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one at a time."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def run_script(connection: sqlite3.Connection, name: str, **parameters: object) -> sqlite3.Cursor:
    """All statements of sql/<name>.sql; the cursor of the last."""
    cursor = connection.cursor()
    for statement in statements(sql_text(name)):
        cursor.execute(statement, parameters)
    return cursor


def ask(connection: sqlite3.Connection, name: str, row: type[Row], **parameters: object) -> list[Row]:
    """The answer to sql/<name>.sql. Its columns are the row's fields, in order."""
    cursor = run_script(connection, name, **parameters)
    columns = tuple(column[0] for column in cursor.description)
    assert columns == row._fields, f"{name}.sql answers {columns}, not {row._fields}"
    return [row._make(values) for values in cursor]
