"""All tables of the run as JSON or CSV, or its sums for Prometheus.

With --output, one file a table in that folder. Without, to stdout: JSON as one list of objects, each naming its table
first; CSV one table at a time (--table). Nothing is left out, so the filters of other commands do not apply.

With --format prometheus, counters, histograms and what each rank is in, of a live or a finished run, in the text format
that a node exporter's text-file collector takes; --output is the file, which is replaced as a whole.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

from .. import prometheus, tables
from ..errors import UsageError
from . import common

TABLES = (
    "rank",
    "fact",
    "thread",
    "call",
    "communicator",
    "recent_collective",
    "cell",
    "bucket",
    "bucket_bound",
    "peer",
    "sample",
    "sample_window",
    "step",
    "region",
    "region_span",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_run_argument(parser)
    parser.add_argument("--format", choices=("json", "csv", "prometheus"), help="what to write (default: json)")
    tables.add_arguments(parser)
    parser.add_argument("--table", choices=TABLES, action="append", help="this table only; may be repeated")
    parser.add_argument("--output", type=Path, metavar="PATH", help="a folder, one file a table; for Prometheus a file")


def run(arguments: argparse.Namespace) -> None:
    form = arguments.format or ("csv" if arguments.csv else "json")
    if form == "prometheus":
        write_prometheus(arguments)
        return
    wanted = arguments.table or list(TABLES)
    if form == "csv" and not arguments.output and len(wanted) > 1:
        raise UsageError("export", "CSV holds one table: choose --table, or --output for a folder of files")
    connection = common.open_noted(arguments, with_samples=True, most_samples=None).connection
    if arguments.output:
        write_folder(connection, wanted, form, arguments.output)
    elif form == "json":
        tables.write_json(sys.stdout, (record for table in wanted for record in records(connection, table, named=True)))
    else:
        tables.write_csv(sys.stdout, *fields_and_rows(connection, wanted[0]))


def write_prometheus(arguments: argparse.Namespace) -> None:
    if arguments.table:
        raise UsageError("export", "Prometheus takes sums, not tables: leave --table out")
    lines = (f"{line}\n" for line in prometheus.text(common.open_whole(arguments)))
    if arguments.output:
        with common.written_whole(arguments.output) as file:
            file.writelines(lines)
    else:
        sys.stdout.writelines(lines)


def write_folder(connection: Connection, wanted: list[str], form: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for table in wanted:
        with common.written_whole(folder / f"{table}.{form}") as file:
            if form == "json":
                tables.write_json(file, records(connection, table, named=False))
            else:
                tables.write_csv(file, *fields_and_rows(connection, table))


def fields_and_rows(connection: Connection, table: str) -> tuple[list[str], Iterator[tuple]]:
    cursor = connection.execute(f"SELECT * FROM main.{table}")  # a name from TABLES
    return [column[0] for column in cursor.description], cursor


def records(connection: Connection, table: str, named: bool) -> Iterator[dict]:
    fields, rows = fields_and_rows(connection, table)
    for row in rows:
        yield {**({"table": table} if named else {}), **dict(zip(fields, row))}
