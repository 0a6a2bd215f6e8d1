"""Tables and views that merge adds for people's own queries, the queries that the documentation
has, and the same tables as Parquet and long CSV."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from pathlib import Path

import planted
import pytest
from commprof_report.base.errors import ReportError
from commprof_report.exporters import parquet
from commprof_report.run.alignment import align
from commprof_report.run.run import run_open
from commprof_report.run.views import VIEWS
from planted_job import HostClock, Program
from test_root_causes import MS, grid

SCHEMA_PAGE = Path(__file__).resolve().parents[2] / "docs" / "SCHEMA.md"
QUERIES = [
    re.sub("^   ", "", text, flags=re.M)
    for text in re.findall(r"   ```sql\n(.*?)\n   ```", SCHEMA_PAGE.read_text(), re.S)
]


@pytest.fixture(params=(planted.training_run, planted.gpu_run))
def folder(request, tmp_path):
    return planted.write_databases(tmp_path / "run", request.param())


@pytest.fixture
def merged(report, folder, tmp_path) -> sqlite3.Connection:
    assert report("merge", folder, tmp_path / "all.db").status == 0
    connection = sqlite3.connect(tmp_path / "all.db")
    connection.row_factory = sqlite3.Row
    return connection


def found(connection: sqlite3.Connection, view: str) -> list[dict]:
    return [dict(row) for row in connection.execute(f"SELECT * FROM {view}")]


def test_sizes_and_percentiles_are_those_of_the_command(report, folder, merged):
    keys = ("call", "identity", "measure", "memory_kind", "bytes")
    answers = (
        report("sizes", folder, "--json").rows
        + report("sizes", folder, "--completion", "--json").rows
    )
    expected = {tuple(row[key] for key in keys): row for row in answers}
    for view, columns in (
        (
            "sizes",
            (
                "communicator", "family", "library", "count", "volume_bytes", "total_ns", "mean_ns",
                "min_ns", "max_ns",
            ),
        ),
        ("percentiles", ("communicator", "count", "p50_ns", "p95_ns", "p99_ns")),
    ):
        rows = found(merged, view)
        assert {tuple(row[key] for key in keys) for row in rows} == expected.keys()
        for row in rows:
            wanted = expected[tuple(row[key] for key in keys)]
            assert {key: row[key] for key in columns} == {key: wanted[key] for key in columns}


def test_calls_are_on_the_time_axis_of_the_reports(report, tmp_path):
    """Clocks of three hosts, a day apart, of which one runs too fast."""
    program = Program(3, [HostClock(77), HostClock(86_400_000 * MS, 2e-5), HostClock(5)])
    for _ in range(2_000):
        for rank in range(3):
            program.compute(rank, 20 * MS)
        program.collective("MPI_Allreduce", program.job.world)
    path = program.end().write(tmp_path / "run.db")
    assert report("merge", path, tmp_path / "all.db").status == 0
    run = run_open(path, with_samples=True, most_samples=None)
    aligned_ns = align(run.connection).aligned_ns
    samples = run.connection.execute(
        "SELECT world_rank, start_ns FROM sample ORDER BY world_rank, start_ns"
    ).fetchall()
    shown = (
        sqlite3.connect(tmp_path / "all.db")
        .execute("SELECT begin_ns FROM calls ORDER BY world_rank, begin_ns") .fetchall()
    )
    assert len(shown) == len(samples) == 6_000
    assert (
        max(abs(begin_ns - aligned_ns(*sample)) for (begin_ns,), sample in zip(shown, samples)) <= 1
    )


def test_collectives_name_the_last_rank_and_how_much_earlier_the_first_came(report, tmp_path):
    path = grid([{2: 8 * MS}] * 40).write(tmp_path / "run.db")
    assert report("merge", path, tmp_path / "all.db").status == 0
    rows = sqlite3.connect(tmp_path / "all.db").execute(
        "SELECT last_rank, ranks, spread_ns, end_ns - last_begin_ns FROM collectives WHERE "
        "communicator = 'row 2'"
    )
    assert rows.fetchall() == [(2, 2, 8 * MS, 10_000)] * 40


def test_an_anonymous_database_has_anonymous_views(report, run_folder, tmp_path):
    assert report("merge", "--anonymous", run_folder, tmp_path / "all.db").status == 0
    hosts = (
        sqlite3.connect(tmp_path / "all.db")
        .execute("SELECT DISTINCT host FROM named_cell ORDER BY host") .fetchall()
    )
    assert hosts == [("host-1",), ("host-2",)]


def test_a_view_that_somebody_has_changed_is_not_overwritten(report, run_folder, tmp_path):
    path = tmp_path / "all.db"
    assert report("merge", run_folder, path).status == report("merge", run_folder, path).status == 0
    connection = sqlite3.connect(path)
    connection.executescript("DROP VIEW sizes; CREATE VIEW sizes AS SELECT 1 AS mine")
    connection.close()
    assert "not overwritten" in report("merge", run_folder, path).err
    assert report("sizes", path, "--json").out == report("sizes", run_folder, "--json").out


def answers(connection: sqlite3.Connection) -> list[list[tuple]]:
    connection.row_factory = None
    return [connection.execute(query).fetchall() for query in QUERIES]


def test_the_ten_queries_of_the_documentation_answer(merged):
    assert len(QUERIES) == 10 and all(answers(merged))


def test_pandas_answers_the_ten_queries_alike(merged):
    pandas = pytest.importorskip("pandas")
    expected = answers(merged)
    for query, rows in zip(QUERIES, expected):
        frame = pandas.read_sql_query(query, merged)
        assert len(frame) == len(rows)


def importable(module: str) -> bool:
    try:
        return bool(__import__(module))
    except ImportError:
        return False


@pytest.mark.parametrize("module", ("pyarrow", "duckdb"))
def test_parquet_has_the_rows_of_the_tables(report, folder, merged, tmp_path, monkeypatch, module):
    if not importable(module) or not importable("duckdb"):
        pytest.skip(f"needs {module} and duckdb")
    duckdb = __import__("duckdb")
    monkeypatch.setattr(
        parquet, "WRITERS", [(name, write) for name, write in parquet.WRITERS if name == module]
    )
    assert (
        report("export", folder, "--format", "parquet", "--output", tmp_path / "tables").status == 0
    )
    connection = duckdb.connect()
    for path in (tmp_path / "tables").iterdir():
        connection.execute(f"CREATE VIEW {path.stem} AS SELECT * FROM '{path}'")
    for table in ("sample", "fact", "rank", *VIEWS):
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        merged.row_factory = None
        assert sorted(rows, key=repr) == sorted(
            merged.execute(f"SELECT * FROM {table}").fetchall(), key=repr
        )
    for query, expected in zip(QUERIES, answers(merged)):
        assert [len(row) for row in connection.execute(query).fetchall()] == [
            len(row) for row in expected
        ]


def test_without_a_writer_of_parquet_one_line_says_what_is_needed(
    report, run_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(parquet, "WRITERS", [("no_such_module", None)])
    answer = report("export", run_folder, "--format", "parquet", "--output", tmp_path / "tables")
    assert (answer.status, answer.err.count("\n")) == (1, 1)
    assert "pyarrow or duckdb" in answer.err and not (tmp_path / "tables").exists()
    with pytest.raises(ReportError):
        parquet.writer()


def test_long_csv_has_every_counter_by_name(report, folder, merged):
    rows = list(csv.DictReader(io.StringIO(report("export", folder, "--format", "long-csv").out)))
    for quantity in ("count", "volume_bytes", "total_ns"):
        (expected,) = merged.execute(
            f"SELECT sum({quantity}) FROM named_cell WHERE count > 0"
        ).fetchone()
        assert sum(int(row["value"]) for row in rows if row["quantity"] == quantity) == expected
    keys = [tuple(value for key, value in row.items() if key != "value") for row in rows]
    assert len(set(keys)) == len(keys) and {row["run_id"] for row in rows} == {"job-1"}
    assert {row["measure"] for row in rows if row["quantity"] == "blocked_ns"} == {"completion"}


@pytest.mark.parametrize(
    "words", (("--format", "parquet"), ("--format", "long-csv", "--table", "rank"))
)
def test_wrong_options_are_refused(report, run_folder, words):
    assert report("export", run_folder, *words).status == 2


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_exported_where_it_is_named(report, folder, merged, view):
    assert [{**row, "table": view} for row in found(merged, view)] == report(
        "export", folder, "--json", "--table", view
    ).rows
