"""Tables as Parquet files, written by pyarrow: TABLE.parquet; where rows are of ranks, for each
node TABLE/node=NAME/part-0.parquet, so engines read nodes at once, and only those that are asked
for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from urllib.parse import quote

from ..base import ReportError, query
from ..base.files import renamed_whole

SQL = query.beside(__file__)
ROWS = 100_000  # in memory at a time
UNKNOWN = "__HIVE_DEFAULT_PARTITION__"  # as readers of partitions name what has none
OF_NODE = {  # by the column that says whose a row is; ranks: of the node
    "world_rank": "world_rank IN ({ranks})",
    "cell": "cell IN (SELECT cell FROM main.cell WHERE world_rank IN ({ranks}))",
    "activity": "activity IN"
    " (SELECT activity FROM main.gpu_activity WHERE world_rank IN ({ranks}))",
}


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
    columns = columns_of(connection, table)
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    parts = {folder / path: condition for path, condition in _parts(connection, table, columns)}
    if {*(folder / table).rglob("*.parquet")} - parts.keys():
        raise ReportError(folder / table, "holds nodes of another export: remove it first")
    if table in ("sample", "gpu_sample"):  # read once for each node
        connection.execute(f"CREATE INDEX IF NOT EXISTS main.{table}_of ON {table} (world_rank)")
    for path, condition in parts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = connection.execute(f"SELECT * FROM main.{table} WHERE {condition}")
        with renamed_whole(path, mode) as aside, parquet.ParquetWriter(aside, schema) as file:
            while batch := rows.fetchmany(ROWS):
                arrays = [
                    pyarrow.array(values, field.type) for values, field in zip(zip(*batch), schema)
                ]
                file.write_batch(pyarrow.record_batch(arrays, schema=schema))


def _parts(
    connection: Connection, table: str, columns: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Paths of the files of a table, and the condition on their rows."""
    condition = next((OF_NODE[name] for name in OF_NODE if name in columns), "")
    if not condition:
        yield f"{table}.parquet", "1"
    for node, ranks in SQL.run(connection, "nodes") if condition else ():
        name = quote(node, safe=" ") or UNKNOWN
        yield f"{table}/node={name}/part-0.parquet", condition.format(ranks=ranks)


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
