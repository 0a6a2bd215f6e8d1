"""The questions to a store: columns of the answers, in the order of each question, and a note.

Engines that ask a store. The questions are in DuckDB's dialect; sqlglot turns them.

Who is late in other people's jobs, too, and which calls have changed: tests over all jobs of a
store, adjusted for how many are looked at.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, Callable, Tuple

from ..base import (
    AS_EVERYWHERE,
    Field,
    ReportError,
    Row,
    UsageError,
    benjamini_hochberg,
    gathered,
    np,
    query,
    row_type,
    text,
    threshold,
    units,
)
from .store import PARTITIONS, Store, TABLES, duckdb, files_of, job_files


def _hours(key: str, meaning: str, head: str) -> Field:
    return Field(
        key, meaning, head, lambda value: f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
    )


FIELDS = {
    field.key: field
    for field in (
        text("user_name", "of the jobs, as the store has it; days and months in UTC", "user"),
        text("program", "", "program", 40),
        text("library", "", "library", 32),
        text("host", "", "host"),
        text("month", "", "month"),
        text("cluster", "", "cluster"),
        text("first_day", "", "first day"),
        text("last_day", "", "last day"),
        text("run_id", "", "job"),
        text("day", "", "day"),
        text("ended", "`finalize`, `exit`, `abort`; `killed`: a rank has no end", "ended"),
        text("call", "the call; `(other)`: beyond the 60 rows of a job with the most time", "call"),
        text(
            "role",
            "of the communicator: `world` (all ranks), `part`, `alone` (one rank), `none`, `other`",
            "role",
        ),
        Field(
            "high_bytes",
            "the class of sizes: above half of it, up to it",
            "up to",
            units.size,
        ),
        text("measure", "[Words](#words)", "measure"),
        Field("jobs", "their numbers", "jobs"),
        Field("users", "", "users"),
        Field("ranks", "", "ranks"),
        Field("hosts", "", "hosts"),
        Field("killed_jobs", "", "killed"),
        Field(
            "last_jobs",
            "jobs in which the host [came last](FLEET.md#questions); in how many any in its "
            "place would have",
            "came last",
        ),
        Field("expected_jobs", "", "expected", units.mean_count),
        Field(
            "behind_share",
            "how much less time its ranks spend in these calls than others, of the wall time",
            "behind",
            units.share,
        ),
        Field(
            "p",
            "[probability of chance](FLEET.md#questions), adjusted for all hosts or calls "
            "(Benjamini and Hochberg)",
            "p",
            lambda value: f"{value:.1g}",
        ),
        Field("is_late", "1: the host is late in other people's jobs, too", "late"),
        Field("days", "days with such jobs", "days"),
        Field(
            "before_ns",
            "medians of the days' medians, before the day and from it on; their ratio - 1",
            "before",
        ),
        Field("after_ns", "", "after"),
        Field("change", "", "change", units.change),
        text(
            "since", "settings and versions of the program's jobs since that day alone", "since", 60
        ),
        Field("calls", "sums: calls, polls included, and their `volume_bytes`", "calls"),
        Field("volume_bytes", "", "volume"),
        _hours("rank_hours", "sum of the ranks' wall times", "rank hours"),
        _hours("call_hours", "sum of the time in these calls", "hours in call"),
        Field("call_share", "of the ranks' wall times: time in these calls; in MPI", "share"),
        Field("mpi_share", "", "in MPI", units.share),
        _hours(
            "uneven_hours",
            "`uneven_ns` of the [store](FLEET.md#the-store)",
            "uneven hours",
        ),
        _hours("small_hours", "time in collectives of 4 KiB or less", "small hours"),
        Field("wall_ns", "wall time of the longest rank", "wall time"),
        Field("total_ns", AS_EVERYWHERE, "time"),
        Field("mean_ns", AS_EVERYWHERE, "per call"),
        Field(
            "p50_ns",
            "percentiles, from histograms in halves of an octave; p99 of 100 calls or more",
            "p50",
        ),
        Field("p99_ns", "", "p99"),
    )
}


Question = namedtuple("Question", "title columns note")


QUESTIONS = {
    "top": Question(
        "Time in a call by user and program",
        "user_name program jobs calls call_hours rank_hours call_share",
        "Time in {call}. A rank hour is a core hour where a rank has one core.",
    ),
    "programs": Question(
        "Programs that would gain",
        "program jobs users rank_hours mpi_share uneven_hours small_hours",
        "Uneven: what ranks wait beyond the one that waits least, the most that balance gains.",
    ),
    "libraries": Question(
        "Libraries under one program",
        "program library jobs users rank_hours mpi_share first_day last_day",
        "Observed, not tried: users, inputs and months differ, too. Runs of both tell: `compare`.",
    ),
    "sizes": Question(
        "Message sizes",
        "call high_bytes measure jobs calls volume_bytes call_hours mean_ns p50_ns p99_ns",
        "",
    ),
    "trend": Question(
        "Month by month",
        "month cluster jobs users killed_jobs rank_hours mpi_share call_hours call_share",
        "Hours in call: {call}.",
    ),
    "hosts": Question(
        "Nodes that are late in other people's jobs",
        "host jobs users last_jobs expected_jobs behind_share p is_late",
        "",
    ),
    "changes": Question(
        "Calls that have changed",
        "program ranks hosts call role high_bytes measure day days jobs before_ns after_ns change "
        "p since",
        "Since: what no more than a tenth of the jobs had before; it need not be the cause.",
    ),
    "job": Question(
        "One job",
        "run_id day user_name program library ended ranks hosts wall_ns call role high_bytes "
        "measure calls volume_bytes total_ns mean_ns call_share",
        "",
    ),
}


def fields(name: str) -> list[Field]:
    return [FIELDS[key] for key in QUESTIONS[name].columns.split()]


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
    for statement in query.statements("fleet/views"):
        connection.execute(statement)

    def ask(name: str, asked: Asked) -> Answer:
        connection.execute(asked_view(asked))
        found = connection.execute(query.text(f"fleet/{name}"))
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
        module("pyspark.sql")
        .SparkSession.builder.master(url)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        .getOrCreate()
    )
    for table in TABLES:
        files = session.read.parquet(str(store.folder.resolve() / table))
        files.createOrReplaceTempView(f"{table}_files")
    for statement in turned(query.text("fleet/views"), "spark"):
        session.sql(statement)

    def ask(name: str, asked: Asked) -> Answer:
        session.sql(turned(asked_view(asked), "spark")[0])
        found = session.sql(turned(query.text(f"fleet/{name}"), "spark")[0])
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
    views(query.text("fleet/views"))

    def ask(name: str, asked: Asked) -> Answer:
        views(asked_view(asked))
        text = turned(query.text(f"fleet/{name}"), "clickhouse")[0]
        options = " SETTINGS join_use_nulls = 1, output_format_json_quote_64bit_integers = 0"
        found = json.loads(session.query(text + options, "JSONCompact").bytes())
        return [column["name"] for column in found["meta"]], found["data"]

    return ask


def postgresql_open(_: Store, url: str) -> Engine:
    """By psql, of the tables that `fleet load` has written."""
    views = turned(query.text("fleet/views"), "postgres")

    def ask(name: str, asked: Asked) -> Answer:
        view, text = (
            turned(each, "postgres")[0] for each in (asked_view(asked), query.text(f"fleet/{name}"))
        )
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
    """Writes the tables of a store into PostgreSQL, in place of those that are there, and the views
    that questions ask."""
    connection = duckdb()
    for table, own in TABLES.items():
        columns = {**own, **PARTITIONS}
        found = connection.read_parquet(files_of(store, table), hive_partitioning=True)
        declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        with TemporaryDirectory() as folder:
            path = f"{folder}/{table}.csv"
            found.project(", ".join(columns)).write_csv(path)
            psql(
                url,
                (
                    f"DROP TABLE IF EXISTS {table}_files CASCADE",
                    f"CREATE TABLE {table}_files ({declared})",
                    f"\\copy {table}_files FROM '{quoted(path)}' WITH CSV HEADER FORCE NOT NULL "
                    f"{', '.join(name for name, kind in columns.items() if kind == 'VARCHAR')}",
                ),
            )
    psql(url, turned(query.text("fleet/views").replace("TEMP VIEW", "VIEW"), "postgres"))


ENGINES = {
    "duckdb": duckdb_open,
    "spark": spark_open,
    "clickhouse": clickhouse_open,
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


LEVEL = threshold("fleet.level")
BEHIND, CHANGE = threshold("fleet.behind"), threshold("fleet.change")
LEAST_DAYS = threshold("fleet.days")
NEAR = 3  # days on either side of a change
HOST, CHANGED = (row_type(name, QUESTIONS[name].columns.split()) for name in ("hosts", "changes"))


def answers(engine: Engine, name: str, asked: Asked) -> list[Row]:
    """The rows of a question, judged where chance has a part in them."""
    rows = rows_of(engine, name, asked)
    if name == "hosts":
        return hosts_judged(rows)
    return [_since(engine, row) for row in changes_judged(rows)] if name == "changes" else rows


def _since(engine: Engine, row: Row) -> Row:
    asked = {"program": row.program, "day": row.day}
    found = (f"{each.name}={each.value}" for each in rows_of(engine, "around", asked))
    return row._replace(since=", ".join(found))


def verdict(hosts: Sequence[Row]) -> list[str]:
    late = [row for row in hosts if row.is_late]
    return [
        f"{row.host} came last in {row.last_jobs:,} of {row.jobs:,} jobs of {row.users:,} users; "
        f"any host there in {row.expected_jobs:,.0f}. It is behind by "
        f"{units.share(row.behind_share)} of the wall time."
        for row in late
    ] or ["No host comes last in other people's jobs, too, beyond chance."]


def hosts_judged(rows: Sequence[Row]) -> list[Row]:
    """rows: of hosts.sql, a host and user each. The user whose jobs say most against a host does
    not count for it, so one person's habit is no fault of the host's."""
    found = []
    for host, own in gathered((row.host, row) for row in rows).items():
        others = sorted(own, key=lambda row: row.expected_jobs - row.last_jobs)[1:]
        jobs, last, expected, behind_ns, wall_ns = (
            sum(getattr(row, key) for row in own)
            for key in ("jobs", "last_jobs", "expected_jobs", "behind_ns", "wall_ns")
        )
        p = tail(
            *(
                sum(getattr(row, key) for row in others)
                for key in ("last_jobs", "expected_jobs", "variance")
            )
        )
        found.append(
            HOST(
                host,
                int(jobs),
                len(own),
                int(last),
                expected,
                behind_ns / max(1, wall_ns),
                p,
                0,
            )
        )
    adjusted = benjamini_hochberg([row.p for row in found])
    judged = (
        row._replace(p=p, is_late=int(is_late(p, row.behind_share)))
        for row, p in zip(found, adjusted)
    )
    return sorted(judged, key=lambda row: (-row.is_late, row.p, row.host))


def is_late(p: float, behind_share: float) -> bool:
    return p <= LEVEL and behind_share >= BEHIND


def tail(observed: float, mean: float, variance: float) -> float:
    """How often chance shows as much: of a binomial distribution with this mean and variance, which
    sums of hypergeometric ones have less than."""
    share = 1 - variance / mean if mean else 1.0
    if observed <= mean or share <= 0 or share >= 1:
        return 1.0
    trials = max(math.ceil(mean / share), math.ceil(observed))
    logs = [
        math.lgamma(trials + 1)
        - math.lgamma(number + 1)
        - math.lgamma(trials - number + 1)
        + number * math.log(share)
        + (trials - number) * math.log1p(-share)
        for number in range(math.ceil(observed), trials + 1)
    ]
    return min(1.0, sum(map(math.exp, logs)))


def changes_judged(rows: Sequence[Row]) -> list[Row]:
    """rows: of changes.sql, a day each of a call of a program on so many ranks."""
    series = gathered(
        ((row.program, row.ranks, row.hosts, row.call, row.role, row.high_bytes, row.measure), row)
        for row in rows
    )
    long = {key: own for key, own in series.items() if len(own) >= LEAST_DAYS}
    tested = [_changed(key, own) for key, own in long.items()]
    adjusted = benjamini_hochberg([row.p for row, _ in tested])
    found = [
        row._replace(p=p)
        for (row, is_step), p in zip(tested, adjusted)
        if is_step and has_changed(p, row.change)
    ]
    return sorted(found, key=lambda row: (row.program, row.day, row.p, row.call))


def has_changed(p: float, change: float) -> bool:
    return p <= LEVEL and abs(change) >= CHANGE


def _changed(key: tuple, days: Sequence[Row]) -> tuple[Row, bool]:
    """The day before which days differ most from those from it on (Pettitt 1979), and whether the
    days right before and after it differ by half as much: else it is a drift, without a date."""
    values = np.array([float(day.mean_ns) for day in days])
    at, p = pettitt(values)
    before, after = np.median(values[:at]), np.median(values[at:])
    step = np.median(values[at : at + NEAR]) - np.median(values[max(0, at - NEAR) : at])
    row = CHANGED(
        *key,
        days[at].day,
        len(days),
        int(sum(day.jobs for day in days)),
        float(before),
        float(after),
        float(after / before - 1) if before else 0.0,
        p,
        "",
    )
    return row, bool(step / (after - before) >= 0.5) if after != before else False


def pettitt(values: np.ndarray) -> tuple[int, float]:
    """The begin of the second part, and the probability that chance alone differs as much."""
    n = len(values)
    order = np.sort(values)
    ranks = (np.searchsorted(order, values) + np.searchsorted(order, values, "right") + 1) / 2
    sums = np.abs(2 * np.cumsum(ranks) - np.arange(1, n + 1) * (n + 1))[:-1]
    at = int(np.argmax(sums))
    return at + 1, min(1.0, 2 * math.exp(-6 * sums[at] ** 2 / (n**3 + n**2)))
