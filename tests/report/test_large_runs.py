"""Runs of many ranks, as bench/large_run.py writes them: what reading them takes, in counts."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path
from statistics import fmean

import planted
import pytest
from commprof_report.base import units
from commprof_report.commands import compare as command
from commprof_report.compare import figures
from commprof_report.compare.comparison import compare
from commprof_report.compare.judge import Rules
from commprof_report.compare.sides import sides_named
from commprof_report.late import late_ranks
from commprof_report.run import run as run_module
from commprof_report.run.database import database_create
from commprof_report.run.run import run_open

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
import large_run  # noqa: E402

RANKS, STEPS = 16, 200


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Path:
    ranks = [large_run.rank_of(rank, RANKS, STEPS) for rank in range(RANKS)]
    return planted.write_databases(tmp_path_factory.mktemp("many"), ranks)


@pytest.mark.slow
def test_the_late_rank_of_the_bench_is_found(report, many):
    rows = report("late", many, "--json").rows
    most = max(rows, key=lambda row: row["caused_ns"])
    assert most["rank"] == large_run.LATE_RANK


@pytest.mark.slow
def test_a_page_of_64_ranks_can_be_sent_by_mail(report, tmp_path):
    planted.write_databases(
        tmp_path / "run", [large_run.rank_of(rank, 64, 30) for rank in range(64)]
    )
    assert report("html", tmp_path / "run").status == 0
    assert (tmp_path / "run" / "report.html").stat().st_size < 2_000_000


@pytest.mark.slow
def test_a_comparison_reads_each_run_once_and_asks_for_no_causes(many, monkeypatch):
    """Who causes waiting takes longer than how much there is, and a comparison does not say."""
    read, asked = [], []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})  # in this process
    monkeypatch.setattr(
        figures,
        "run_open",
        lambda path, *more, **options: read.append(path) or run_open(path, *more, **options),
    )
    for name in ("root_causes", "timelines", "compare_own_time"):
        monkeypatch.setattr(late_ranks, name, lambda *_, name=name: asked.append(name))
    monkeypatch.setattr(late_ranks, "blame", lambda *_: asked.append("blame"))
    sides = command.read(sides_named([[many], [many]]), skipped=0.0)
    (pair,) = compare(sides, Rules()).pairs
    assert (pair.verdict.metric, pair.verdict.change) == ("transfer", 0)
    assert (read, asked) == ([many, many], [])


@pytest.mark.parametrize("most", (20_000, 5_000))
def test_no_more_is_read_than_asked_for(many, most):
    run = run_open(many, with_samples=True, most_samples=most)
    assert most / 4 < run.connection.execute("SELECT count(*) FROM sample").fetchone()[0] <= most
    kinds = "SELECT DISTINCT call FROM sample WHERE sequence IS NULL"
    assert len(run.connection.execute(kinds).fetchall()) == 5, "messages are among them"


@pytest.fixture
def traced(monkeypatch) -> tuple[list[sqlite3.Connection], list[str]]:
    """The connections of runs that are opened, and the statements that SQLite executes."""
    connections: list[sqlite3.Connection] = []
    executed: list[str] = []

    def create() -> sqlite3.Connection:
        connections.append(database_create())
        connections[-1].set_trace_callback(executed.append)
        return connections[-1]

    monkeypatch.setattr(run_module, "database_create", create)
    return connections, executed


@pytest.mark.parametrize(
    "options", ({}, {"with_samples": True}, {"with_samples": True, "most_samples": 50_000})
)
def test_each_row_of_a_file_is_read_once_and_its_empty_tables_are_only_seen_to_be_empty(
    many, traced, options
):
    """To prepare a statement takes longer than to read the few rows of most tables."""
    _, executed = traced
    run_open([many / "rank-0.db"], **options)
    tables = ("cell", "fact", "gpu_kernel")
    of_table = {
        table: [text for text in executed if re.search(rf"source\.{table}\b", text)]
        for table in tables
    }
    (seen,) = of_table["gpu_kernel"]
    assert seen.startswith("SELECT EXISTS") and all(own[0] == seen for own in of_table.values())
    assert [len(own) for own in of_table.values()] == [2, 2, 1]


@pytest.mark.parametrize("command", ("summary", "gpu", "ranks"))
def test_no_statement_visits_all_ranks_for_each_rank(report, many, traced, command):
    """SQLite may, of a table without a key: with 16,000 ranks that was half of `summary`."""
    connections, executed = traced
    report(command, many)
    (connection,) = connections
    connection.set_trace_callback(None)
    tables = {name for (name,) in connection.execute("SELECT name FROM temp.sqlite_master")}
    inside = set()
    for statement in {*executed}:
        with suppress(sqlite3.Error):  # it makes a table that is there
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
            loops = [row for row in plan if re.match("SCAN|SEARCH", row[3])]
            within = (
                row for at, row in enumerate(loops) if row[1] in {up for _, up, *_ in loops[:at]}
            )
            inside |= {text.split()[1] for *_, text in within if text.startswith("SCAN")}
    assert {"rank_wall", "rank_state"} <= tables
    assert not inside & (tables | {"rank", "cell", "fact", "communicator", "thread"})


# Communicators of a family have one row.

SLOW, EARLIER_NS = 3, 2_000_000


@pytest.fixture(scope="module")
def uneven(tmp_path_factory) -> Path:
    """Eight pairs of ranks sum gradients; of one the first rank comes 2 ms earlier than that of the
    others."""
    ranks = [large_run.rank_of(rank, RANKS, 30) for rank in range(RANKS)]
    for rank in (ranks[SLOW], ranks[SLOW + large_run.ON_HOST]):
        for cell in rank.cells:
            more_ns = EARLIER_NS * (cell.communicator == large_run.DATA)
            cell.durations = [ns + more_ns for ns in cell.durations]
    for sample in ranks[SLOW].samples:
        sample.start_ns -= EARLIER_NS * (sample.communicator == large_run.DATA)
    return planted.write_databases(tmp_path_factory.mktemp("uneven"), ranks)


def cells_of(text: str, family: str) -> list[str]:
    """Cells of the family's row of Allreduces, behind call and communicators."""
    row = f"MPI_Allreduce  {family}"
    (line,) = [line for line in text.splitlines() if line.startswith(row)]
    return re.split("  +", line)[2:]


@pytest.mark.slow
def test_a_family_has_one_row_in_late_whose_times_are_those_of_all_siblings(report, uneven):
    shown, each = report("late", uneven).out, report("late", uneven, "--by", "call", "--json").rows
    of_data = [row for row in each if row["communicator"].startswith("data ")]
    analysed, *times = cells_of(shown, "8 communicators named data")[:4]
    assert len(of_data) == 8
    assert int(analysed.replace(",", "")) == sum(row["collectives"] for row in of_data)
    keys = ("total_ns", "wait_ns", "transfer_ns")
    assert times == [units.duration(sum(row[key] for row in of_data)) for key in keys]
    assert "data {3-11:8}" in report("late", uneven, "--by", "call").out
    assert "--by call has each communicator of a family." in shown


@pytest.mark.slow
def test_a_family_has_one_row_in_steps_with_the_means_of_all_its_ranks(report, uneven):
    shown, each = report("steps", uneven).out, report("steps", uneven, "--per-call", "--json").rows
    of_tensor = [row for row in each if row["communicator"].startswith("tensor ")]
    calls, _, time, _, share, *_ = cells_of(shown, "2 communicators named tensor")
    assert len(of_tensor) == 2 and {row["ranks"] for row in of_tensor} == {RANKS // 2}
    mean_ns = fmean(row["total_ns"] for row in of_tensor)
    assert (calls, time) == ("6.00", units.duration(mean_ns))
    assert share == units.share(sum(row["share_of_step"] for row in of_tensor))
    assert "tensor {0-7}" in report("steps", uneven, "--per-call").out
