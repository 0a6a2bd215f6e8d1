"""Engines that ask a store. The questions are in DuckDB's dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Tuple

from ..base import query
from ..base.errors import ReportError, UsageError
from ..base.query import Row, row_type
from .store import Store, duckdb
from .tables import TABLES

SQL = query.beside(__file__)
Asked = Mapping[str, str]
Answer = Tuple[Sequence[str], Iterable[Sequence[Any]]]  # columns, and rows
Engine = Callable[[str, Asked], Answer]  # takes a question's name, and what is asked for


def rows_of(engine: Engine, name: str, asked: Asked) -> list[Row]:
    columns, rows = engine(name, asked)
    return list(map(row_type(name, columns)._make, rows))


def asked_view(asked: Asked) -> str:
    values = (f"'{quoted(value)}' AS wanted_{name}" for name, value in asked.items())
    return f"CREATE OR REPLACE TEMP VIEW asked AS SELECT {', '.join(values)}"


def quoted(text: str) -> str:
    return text.replace("'", "''")


def duckdb_open(store: Store, _: str) -> Engine:
    connection = duckdb()
    for table in TABLES:
        files = f"{store.folder}/{table}/*/*/part-*.parquet"
        connection.read_parquet(files, hive_partitioning=True).create_view(f"{table}_files")
    for statement in query.statements(SQL, "views"):
        connection.execute(statement)

    def ask(name: str, asked: Asked) -> Answer:
        connection.execute(asked_view(asked))
        found = connection.execute(SQL.text(name))
        return [column[0] for column in found.description], found.fetchall()

    return ask


ENGINES = {"duckdb": duckdb_open}


def engine_open(store: Store, word: str) -> Engine:
    """word: duckdb, or ENGINE=URL."""
    name, _, url = word.partition("=")
    if name not in ENGINES:
        raise UsageError("--engine", f"{name} is none of {', '.join(ENGINES)}")
    if not any(store.folder.glob("job/*/*/part-*.parquet")):
        raise ReportError(store.folder, "has no job yet: `fleet add` adds some")
    return ENGINES[name](store, url)
