"""Tables and views that merge adds for people's own queries, and the queries that the documentation
has."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from random import Random

import planted
import pytest
from cases import of
from commprof_report.run.alignment import align
from commprof_report.run.run import run_open
from planted_job import HostClock, Job, Program
from test_root_causes import MS, grid

DOCS = Path(__file__).resolve().parents[2] / "docs"


def queries(file: str) -> list[str]:
    """Each with the question before it, in a comment."""
    return [text for text in (DOCS / file).read_text().split(";\n") if text]


QUERIES = queries("queries.sql")


@pytest.fixture(params=(planted.training_run, planted.gpu_run))
def folder(request, tmp_path):
    return planted.write_databases(tmp_path / "run", request.param())


@pytest.fixture
def merged(report, folder, tmp_path) -> sqlite3.Connection:
    assert report("merge", folder, tmp_path / "all.db").status == 0
    connection = sqlite3.connect(tmp_path / "all.db")
    connection.row_factory = sqlite3.Row
    return connection


def test_sizes_and_percentiles_are_those_of_the_command(report, folder, merged):
    key = "call identity measure memory_kind bytes"
    expected = {of(row, key): row for row in report("sizes", folder, "--json").rows}
    sums = "communicator family library count volume_bytes total_ns mean_ns min_ns max_ns"
    for view, columns in (
        ("sizes", sums),
        ("percentiles", "communicator count p50_ns p95_ns p99_ns"),
    ):
        rows = {of(row, key): row for row in merged.execute(f"SELECT * FROM {view}")}
        assert rows.keys() == expected.keys()
        for each, row in rows.items():
            assert of(row, columns) == of(expected[each], columns)


def ask(path: Path, query: str) -> list[tuple]:
    return sqlite3.connect(path).execute(query).fetchall()


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
    samples = "SELECT world_rank, start_ns FROM sample ORDER BY world_rank, start_ns"
    expected = [aligned_ns(*sample) for sample in run.connection.execute(samples)]
    shown = ask(tmp_path / "all.db", "SELECT begin_ns FROM calls ORDER BY world_rank, begin_ns")
    assert len(shown) == 6_000
    assert [begin_ns for (begin_ns,) in shown] == pytest.approx(expected, rel=0, abs=1)


def test_collectives_name_the_last_rank_and_how_much_earlier_the_first_came(report, tmp_path):
    path = grid([{2: 8 * MS}] * 40).write(tmp_path / "run.db")
    assert report("merge", path, tmp_path / "all.db").status == 0
    columns = "last_rank, ranks, spread_ns, end_ns - last_begin_ns"
    of_row = f"SELECT {columns} FROM collectives WHERE communicator = 'row 2'"
    assert ask(tmp_path / "all.db", of_row) == [(2, 2, 8 * MS, 10_000)] * 40


def test_a_view_that_somebody_has_changed_is_not_overwritten(report, run_folder, tmp_path):
    path = tmp_path / "all.db"
    assert report("merge", run_folder, path).status == report("merge", run_folder, path).status == 0
    planted.execute(path, "DROP VIEW calls; CREATE VIEW calls AS SELECT 1 AS mine")
    assert "not overwritten" in report("merge", run_folder, path).err
    assert report("sizes", path, "--json").out == report("sizes", run_folder, "--json").out


def answers(connection: sqlite3.Connection) -> list[list[tuple]]:
    connection.row_factory = None
    return [connection.execute(query).fetchall() for query in QUERIES]


def test_the_ten_queries_of_the_documentation_answer(merged):
    assert len(QUERIES) == 10 and all(answers(merged))


def collectives_of(kinds: Sequence[str]) -> Job:
    """Three ranks. A Waitall completes one or two nonblocking ones, of which the second is ready
    later, or earlier. In a Bcast not all wait for all."""
    job, chance = Job([HostClock(77)] * 3, wall_ns=40_000 * MS), Random(1)
    for rank in range(3 if "persistent" in kinds else 0):
        job.call("MPI_Allreduce_init", 0, 100, rank)
    for step in range(1, 201):
        arrivals = [step * 100 * MS + chance.randrange(8 * MS) for _ in range(3)]
        kind = kinds[step % len(kinds)]
        if kind in ("MPI_Allreduce", "MPI_Bcast"):
            job.collective(kind, arrivals, [10_000] * 3, root=0)
        elif kind == "persistent":
            persistent(job, step, arrivals)
        else:
            ends, latest = job.collective("MPI_Iallreduce", arrivals, [10_000] * 3), arrivals
            if kind == "two nonblocking":
                latest = [arrival + 200 + chance.randrange(8 * MS) for arrival in arrivals]
                ends = list(map(max, ends, job.collective("MPI_Iallreduce", latest, [10_000] * 3)))
            for rank, end_ns in enumerate(ends):
                begin_ns = min(latest[rank] + 100, end_ns)
                complete(job, rank, begin_ns, end_ns, 1 + (kind == "two nonblocking"))
    return job


def complete(job: Job, rank: int, begin_ns: int, end_ns: int, operations: int) -> None:
    """The rank's last operations."""
    own = [row for row in job.rows["sample"] if row["world_rank"] == rank][-operations:]
    for row in own:
        row["completed_ns"] = job.time(rank, end_ns)
    job.call("MPI_Waitall", begin_ns, end_ns, rank)


def persistent(job: Job, step: int, arrivals: list[int]) -> None:
    for rank, arrival_ns in enumerate(arrivals):
        end_ns = max(arrivals) + 10_000
        job.call("MPI_Start", arrival_ns, arrival_ns + 100, rank)
        job.call("MPI_Wait", arrival_ns + 200, end_ns, rank)
        moments = {"start_ns": arrival_ns, "end_ns": arrival_ns + 100, "completed_ns": end_ns}
        times = {key: job.time(rank, at_ns) for key, at_ns in moments.items()}
        what = {"world_rank": rank, "thread": 0, "call": "MPI_Allreduce_init", "communicator": 2}
        which = {"operation": 1, "number": step + 1, "root": None, "bytes": 8}
        job.add("sample_start", **what, **which, **times)


ALL_WAIT = ("MPI_Allreduce", "MPI_Iallreduce", "two nonblocking", "persistent")


@pytest.mark.parametrize("kinds", [*([kind] for kind in ALL_WAIT), ALL_WAIT], ids=str)
def test_the_third_query_gives_the_figures_of_late(report, tmp_path, kinds):
    path = collectives_of(kinds).write(tmp_path / "run.db")
    assert report("merge", path, tmp_path / "all.db").status == 0
    answer = sorted(ask(tmp_path / "all.db", QUERIES[2]))
    rows = report("late", path, "--json").rows
    assert [own[:2] for own in answer] == [of(row, "rank last_count") for row in rows]
    costs = [row["cost_ns"] / 1e9 for row in rows]
    assert [seconds for *_, seconds in answer] == pytest.approx(costs, abs=1e-9)
    assert min(costs) > 0


def test_the_third_query_leaves_out_calls_in_which_not_all_wait_for_all(report, tmp_path):
    path = collectives_of(["MPI_Bcast"]).write(tmp_path / "run.db")
    assert report("merge", path, tmp_path / "all.db").status == 0
    assert ask(tmp_path / "all.db", QUERIES[2]) == []
    assert any(row["cost_ns"] > 0 for row in report("late", path, "--json").rows)
