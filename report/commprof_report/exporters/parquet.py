"""Tables as Parquet files, written by pyarrow."""

from __future__ import annotations

from pathlib import Path
from sqlite3 import Connection

from ..base import ReportError, renamed_whole

ROWS = 100_000  # in memory at a time


def check() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:  # absent, or it does not fit to another package
        raise ReportError(
            "export",
            f"Parquet needs the Python package pyarrow ({error}); without it: --format csv",
        ) from error


def write(connection: Connection, table: str, folder: Path, mode: int) -> None:
    import pyarrow
    from pyarrow import parquet

    types = {"integer": pyarrow.int64(), "real": pyarrow.float64(), "text": pyarrow.string()}
    schema = pyarrow.schema(
        [(name, types[kind]) for name, kind in columns_of(connection, table).items()]
    )
    folder.mkdir(parents=True, exist_ok=True)
    rows = connection.execute(f"SELECT * FROM main.{table}")
    with renamed_whole(folder / f"{table}.parquet", mode) as aside:
        with parquet.ParquetWriter(aside, schema) as file:
            while batch := rows.fetchmany(ROWS):
                arrays = [
                    pyarrow.array(values, field.type) for values, field in zip(zip(*batch), schema)
                ]
                file.write_batch(pyarrow.record_batch(arrays, schema=schema))


def columns_of(connection: Connection, table: str) -> dict[str, str]:
    """Their names, and what the values are: integer, real or text; if there are none, as declared.
    The columns of views are not declared."""
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
