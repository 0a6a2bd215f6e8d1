"""Runs the queries in the .sql files of a folder and returns named tuples."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from .core import Row, row_type

Kind = TypeVar("Kind", bound=NamedTuple)


class Folder:
    """The queries in a folder; name.sql has the query `name`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def text(self, name: str) -> str:
        return (self.folder / f"{name}.sql").read_text(encoding="utf-8")

    def run(
        self, connection: sqlite3.Connection, name: str, **parameters: object
    ) -> sqlite3.Cursor:
        """Executes all statements of name.sql; returns the cursor of the last one."""
        cursor = connection.cursor()
        for statement in statements(self, name):
            cursor.execute(statement, parameters)
        return cursor

    def rows(
        self, connection: sqlite3.Connection, name: str, **parameters: object
    ) -> Iterator[Row]:
        """The rows of name.sql, one by one."""
        cursor = self.run(connection, name, **parameters)
        return map(row_type(name, (column[0] for column in cursor.description))._make, cursor)

    def ask(
        self, connection: sqlite3.Connection, name: str, kind: type[Kind], **parameters: object
    ) -> list[Kind]:
        """The rows of name.sql, of a type that others make, too: its fields are the columns."""
        cursor = self.run(connection, name, **parameters)
        columns = tuple(column[0] for column in cursor.description)
        assert columns == kind._fields, f"{name}.sql answers {columns}, not {kind._fields}"
        return [kind._make(values) for values in cursor]


@lru_cache
def beside(module_file: str) -> Folder:
    """The .sql files in the folder of a module: SQL = query.beside(__file__)."""
    return Folder(Path(module_file).resolve().parent)


@lru_cache(maxsize=None)
def statements(folder: Folder, name: str) -> list[str]:
    """The statements of name.sql."""
    found, statement = [], ""
    for line in folder.text(name).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found
