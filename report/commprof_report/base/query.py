"""Runs the queries in the .sql files of the rooms and returns named tuples. late/hosts is that of
late/hosts.sql."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from .core import Row, row_type

ROOMS = Path(__file__).resolve().parents[1]

Kind = TypeVar("Kind", bound=NamedTuple)


def text(name: str) -> str:
    return (ROOMS / f"{name}.sql").read_text(encoding="utf-8")


def run(connection: sqlite3.Connection, name: str, **parameters: object) -> sqlite3.Cursor:
    """Executes all statements of a file; returns the cursor of the last one."""
    cursor = connection.cursor()
    for statement in statements(name):
        cursor.execute(statement, parameters)
    return cursor


def rows(connection: sqlite3.Connection, name: str, **parameters: object) -> Iterator[Row]:
    """The rows of a query, one by one."""
    cursor = run(connection, name, **parameters)
    kind = row_type(Path(name).name, (column[0] for column in cursor.description))
    return map(kind._make, cursor)


def ask(
    connection: sqlite3.Connection, name: str, kind: type[Kind], **parameters: object
) -> list[Kind]:
    """The rows of a query, of a type that others make, too: its fields are the columns."""
    cursor = run(connection, name, **parameters)
    columns = tuple(column[0] for column in cursor.description)
    assert columns == kind._fields, f"{name}.sql answers {columns}, not {kind._fields}"
    return [kind._make(values) for values in cursor]


@lru_cache(maxsize=None)
def statements(name: str) -> list[str]:
    """The statements of a file."""
    found, statement = [], ""
    for line in text(name).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found
