"""Engines that ask a store. The questions are in DuckDB's dialect; sqlglot turns them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, Callable, Tuple

from ..base import ReportError, UsageError, query
from ..base.query import Row, row_type
from .store import Store, duckdb, files_of, job_files
from .tables import PARTITIONS, TABLES

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
        files = connection.read_parquet(files_of(store, table), hive_partitioning=True)
        files.create_view(f"{table}_files")
    for statement in query.statements(SQL, "views"):
        connection.execute(statement)

    def ask(name: str, asked: Asked) -> Answer:
        connection.execute(asked_view(asked))
        found = connection.execute(SQL.text(name))
        return [column[0] for column in found.description], found.fetchall()

    return ask


def module(name: str) -> Any:
    """A module of an engine; it is named where it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ReportError("--engine", f"needs the Python package {package}") from error


def turned(text: str, dialect: str) -> list[str]:
    """Statements in the dialect of another engine."""
    return module("sqlglot").transpile(text, read="duckdb", write=dialect)


def plain(value: Any) -> Any:
    """Numbers as DuckDB gives them: sums may be decimals, or texts."""
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value


def spark_open(store: Store, url: str) -> Engine:
    """url: of the master: spark://host:7077, or local-cluster[2,1,1024]."""
    session = (
        module("pyspark.sql").SparkSession.builder.master(url).config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false").getOrCreate()
    )
    for table in TABLES:
        files = session.read.parquet(str(store.folder.resolve() / table))
        files.createOrReplaceTempView(f"{table}_files")
    for statement in turned(SQL.text("views"), "spark"):
        session.sql(statement)

    def ask(name: str, asked: Asked) -> Answer:
        session.sql(turned(asked_view(asked), "spark")[0])
        found = session.sql(turned(SQL.text(name), "spark")[0])
        return found.columns, [tuple(map(plain, row)) for row in found.collect()]

    return ask


def clickhouse_open(store: Store, _: str) -> Engine:
    """ClickHouse's engine in this process (chdb)."""
    session = module("chdb.session").Session()
    session.query("CREATE DATABASE fleet ENGINE = Atomic")
    session.query("USE fleet")

    def views(text: str) -> None:
        for statement in turned(text, "clickhouse"):
            session.query(statement.replace(" TEMPORARY VIEW ", " VIEW "))

    for table in TABLES:
        files = quoted(files_of(store, table))
        session.query(f"CREATE VIEW {table}_files AS SELECT * FROM file('{files}', 'Parquet')")
    views(SQL.text("views"))

    def ask(name: str, asked: Asked) -> Answer:
        views(asked_view(asked))
        text = turned(SQL.text(name), "clickhouse")[0]
        options = " SETTINGS join_use_nulls = 1, output_format_json_quote_64bit_integers = 0"
        found = json.loads(session.query(text + options, "JSONCompact").bytes())
        return [column["name"] for column in found["meta"]], found["data"]

    return ask


def postgresql_open(_: Store, url: str) -> Engine:
    """By psql, of the tables that `fleet load` has written."""
    views = turned(SQL.text("views"), "postgres")

    def ask(name: str, asked: Asked) -> Answer:
        view, text = (turned(each, "postgres")[0] for each in (asked_view(asked), SQL.text(name)))
        said = psql(url, [*views, view, f"SELECT row_to_json(answer) FROM ({text}) AS answer"])
        rows = [json.loads(line) for line in said.splitlines()]
        return [*rows[0]] if rows else [], [[*row.values()] for row in rows]

    return ask


def psql(url: str, statements: Iterable[str]) -> str:
    words = ["psql", "--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1", "--dbname", url]
    words += [word for statement in statements for word in ("--command", statement)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ReportError("--engine", "needs psql of PostgreSQL") from error
    if done.returncode:
        raise ReportError("psql", done.stderr.strip())
    return done.stdout


def load(store: Store, url: str) -> None:
    """Writes the tables of a store into PostgreSQL, in place of those that are there."""
    connection = duckdb()
    for table, own in TABLES.items():
        columns = {**own, **PARTITIONS}
        found = connection.read_parquet(files_of(store, table), hive_partitioning=True)
        declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        with TemporaryDirectory() as folder:
            path = f"{folder}/{table}.csv"
            found.project(", ".join(columns)).write_csv(path)
            psql(url, (
                f"DROP TABLE IF EXISTS {table}_files CASCADE",
                f"CREATE TABLE {table}_files ({declared})",
                f"\\copy {table}_files FROM '{quoted(path)}' WITH CSV HEADER FORCE NOT NULL "
                f"{', '.join(name for name, kind in own.items() if kind == 'VARCHAR')}",
            ))


ENGINES = {
    "duckdb": duckdb_open, "spark": spark_open, "clickhouse": clickhouse_open,
    "postgresql": postgresql_open,
}


def engine_open(store: Store, word: str) -> Engine:
    """word: duckdb, or ENGINE=URL."""
    name, _, url = word.partition("=")
    if name not in ENGINES:
        raise UsageError("--engine", f"{name} is none of {', '.join(ENGINES)}")
    if not job_files(store):
        raise ReportError(store.folder, "has no job yet: `fleet add` adds some")
    return ENGINES[name](store, url)
