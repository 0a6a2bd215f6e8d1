"""Tables as Parquet files, written by pyarrow, or by DuckDB where that is installed instead."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from sqlite3 import Connection, Cursor
from typing import Callable

from ..base.errors import ReportError

ROWS = 100_000  # in memory at a time
Columns = dict[str, str]  # names, and what their values are: integer, real or text


def writer() -> Callable[[Connection, str, Path], None]:
    for module, write in WRITERS:
        try:
            import_module(module)
        except ImportError:  # absent, or it does not fit to another package
            continue
        return partial(_table_write, write)
    raise ReportError(
        "export",
        "Parquet needs the Python package pyarrow or duckdb; without them: --format csv",
    )


def _table_write(
    write: Callable[[Cursor, Columns, Path], None], connection: Connection, table: str, output: Path
) -> None:
    columns = columns_of(connection, table)
    write(connection.execute(f"SELECT * FROM main.{table}"), columns, output)


def columns_of(connection: Connection, table: str) -> Columns:
    """As the values are; if there are none, as declared. The columns of views are not declared."""
    declared = {
        name: "text" if kind == "TEXT" else "integer"
        for _, name, kind, *_ in connection.execute(f"PRAGMA main.table_info({table})")
    }
    kinds = ", ".join(
        f"max(typeof({name}) = 'text'), max(typeof({name}) = 'real'), count({name})"
        for name in declared
    )
    found = iter(connection.execute(f"SELECT {kinds} FROM main.{table}").fetchone())
    of_values = zip(declared.items(), zip(found, found, found))
    return {
        name: "text" if is_text else "real" if is_real else "integer" if count else kind
        for (name, kind), (is_text, is_real, count) in of_values
    }


def _batches(rows: Cursor) -> Iterator[list[tuple]]:
    while batch := rows.fetchmany(ROWS):
        yield batch


def _with_pyarrow(rows: Cursor, columns: Columns, output: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    types = {"integer": pyarrow.int64(), "real": pyarrow.float64(), "text": pyarrow.string()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(output, schema) as file:
        for batch in _batches(rows):
            arrays = [
                pyarrow.array(values, field.type) for values, field in zip(zip(*batch), schema)
            ]
            file.write_batch(pyarrow.record_batch(arrays, schema=schema))


def _with_duckdb(rows: Cursor, columns: Columns, output: Path) -> None:
    """By way of a file of JSON, which keeps null and empty text apart."""
    import duckdb

    types = {"integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR"}
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "rows.json"
        with open(lines, "w", encoding="utf-8") as file:
            for batch in _batches(rows):
                file.writelines(json.dumps(dict(zip(columns, row))) + "\n" for row in batch)
        connection = duckdb.connect()
        of_types = {name: types[kind] for name, kind in columns.items()}
        connection.read_json(
            str(lines), columns=of_types, format="newline_delimited"
        ).write_parquet(str(output))
        connection.close()


WRITERS = [("pyarrow", _with_pyarrow), ("duckdb", _with_duckdb)]
