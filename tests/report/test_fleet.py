"""All jobs of a centre: what is added to a store, and what DuckDB answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fleets
import planted
import pytest
from commprof_report.fleet import job as jobs, questions, store as stores
from commprof_report.fleet.store import jobs_write, store_create
from conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def duckdb():
    """From the package registry, into build/engines."""
    made = subprocess.run([ROOT / "setup/engines.sh", "duckdb"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no duckdb: {made.stderr[-200:]}")
    sys.path.append(made.stdout.strip())


@pytest.fixture
def store(report, run_folder, tmp_path) -> Path:
    """With the planted run of four ranks."""
    assert report("fleet", "add", tmp_path / "store", run_folder).status == 0
    return tmp_path / "store"


def answer(report, store: Path, question: str, *words: object) -> list[dict]:
    found = report("fleet", question, store, *words, "--json")
    assert found.status == 0, found.err
    return found.rows


def test_a_run_that_is_added_again_counts_once(report, store, run_folder):
    assert report("fleet", "add", store, run_folder).out == (
        "0 jobs added; 1 known; 0 not complete yet\n"
    )
    (row,) = answer(report, store, "trend")
    assert row["jobs"] == 1


def test_a_folder_is_opened_again_only_when_it_has_changed(report, store, run_folder):
    """Its rank 0 is damaged meanwhile, which leaves the folder's time as it is."""
    (run_folder / "rank-0.db").write_bytes(b"")
    assert report("fleet", "add", store, run_folder).err == ""
    os.utime(run_folder, (0, 0))
    said = report("fleet", "add", store, run_folder)
    assert "rank-0.db: is empty" in said.err and said.out.startswith("0 jobs added; 1 known")


def test_jobs_of_several_files_are_all_counted(report, run_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "AT_ONCE", 1)
    monkeypatch.setattr(stores, "IN_PART", 1)
    other = planted.write_databases(tmp_path / "other", [planted.Rank(0, 1)])
    said = report("fleet", "add", tmp_path / "store", run_folder, other).out
    assert said.startswith("2 jobs added; 0 known")


def test_programs_of_one_rank_that_start_in_one_second_are_as_many_jobs(report, tmp_path):
    """As in a job array, whose id they share."""
    for place in range(3):
        rank = planted.Rank(0, 1, start_unix_ns=planted.START_UNIX_NS + place)
        planted.write_databases(tmp_path / "spool" / str(place), [rank])
    said = report("fleet", "add", tmp_path / "store", "--from", tmp_path / "spool").out
    assert said.startswith("3 jobs added; 0 known")


def added_by_another(store: Path, run_folder: Path) -> Path:
    """A second writer adds the run and another one, in files of another number; its file of
    jobs."""
    template = fleets.template_of(run_folder)
    other = template._replace(
        run=template.run + 1,
        rows={
            table: [(row[0] + 1, *row[1:]) for row in rows] for table, rows in template.rows.items()
        },
    )
    before = {*store.glob("job/*/*/*")}
    jobs_write(store_create(store, None, False), [template, other], "main")
    (added,) = {*store.glob("job/*/*/*")} - before
    return added


def test_a_run_that_two_writers_add_at_once_counts_once(report, store, run_folder):
    calls = answer(report, store, "sizes")[0]["calls"]
    added_by_another(store, run_folder)
    assert [row["jobs"] for row in answer(report, store, "trend")] == [2]
    sizes = answer(report, store, "sizes")[0]
    assert (sizes["jobs"], sizes["calls"]) == (2, 2 * calls)


def test_rows_of_a_writer_that_was_killed_do_not_count(report, store, run_folder):
    """It writes the file of jobs last."""
    sizes = answer(report, store, "sizes", "--call", "%")
    added_by_another(store, run_folder).unlink()
    assert answer(report, store, "sizes", "--call", "%") == sizes


def killed(folder: Path) -> Path:
    """Ledgers of two ranks of four without an end."""
    ranks = [
        replace(rank, run_id="job-2", ended="running", wall_ns=None)
        for rank in planted.training_run()[:2]
    ]
    return planted.write_ledgers(folder, ranks)


def test_a_killed_job_is_read_from_its_ledgers(report, tmp_path):
    assert report("fleet", "add", tmp_path / "store", killed(tmp_path / "run")).status == 0
    (row,) = answer(report, tmp_path / "store", "trend")
    assert (row["killed_jobs"], row["mpi_share"] > 0) == (1, True)


def test_a_spool_is_read_where_jobs_are_complete_or_quiet(report, run_folder, tmp_path):
    shutil.copytree(run_folder, tmp_path / "spool" / "ada" / "whole")
    killed(tmp_path / "spool" / "bob" / "killed")
    spool = ("fleet", "add", tmp_path / "store", "--from", tmp_path / "spool")
    assert report(*spool).out == "1 job added; 0 known; 1 not complete yet\n"
    for path in (tmp_path / "spool" / "bob" / "killed").iterdir():
        os.utime(path, (0, 0))
    assert report(*spool).out == "1 job added; 1 known; 0 not complete yet\n"


def test_a_run_in_a_folder_for_each_rank_is_one_job(report, run_folder, tmp_path):
    for path in sorted(run_folder.glob("rank-*.db")):
        shutil.copytree(
            run_folder,
            tmp_path / "spool" / path.stem,
            ignore=lambda _, names: [name for name in names if name != path.name],
        )
    said = report("fleet", "add", tmp_path / "store", "--from", tmp_path / "spool").out
    assert said == "1 job added; 0 known; 0 not complete yet\n"
    report("fleet", "add", tmp_path / "whole", run_folder)
    assert answer(report, tmp_path / "store", "sizes") == answer(
        report, tmp_path / "whole", "sizes"
    )


def test_sums_are_those_of_the_run(report, store, run_folder):
    calls = {row["call"]: row for row in report("calls", run_folder, "--json").rows}
    whole = {}
    for row in answer(report, store, "job", "job-1"):
        if row["measure"] == "call":
            known = whole.setdefault(row["call"], [0, 0])
            whole[row["call"]] = [known[0] + row["calls"], known[1] + row["total_ns"]]
    assert whole == {
        name: [row["count"], row["total_ns"]]
        for name, row in calls.items()
        if row["library"] == "mpi"
    }


def test_a_job_has_at_most_60_rows_and_loses_no_time(run_folder, monkeypatch):
    whole = fleets.template_of(run_folder)
    monkeypatch.setattr(jobs, "MOST_ROWS", 3)
    folded = fleets.template_of(run_folder)
    measures = {row[5] for row in whole.rows["row"]}
    assert len(folded.rows["row"]) <= 3 + len(measures)
    for place in (6, 7, 8):
        assert sum(row[place] for row in folded.rows["row"]) == sum(
            row[place] for row in whole.rows["row"]
        )
    assert sum(row[-1] for row in folded.rows["bucket"]) == sum(
        row[-1] for row in whole.rows["bucket"]
    )


def test_without_duckdb_one_line_names_it(report, tmp_path, run_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    said = report("fleet", "add", tmp_path / "store", run_folder)
    assert (said.status, said.err) == (
        1,
        "hvprof-report: fleet: needs the Python package duckdb: pip install duckdb\n",
    )


def test_each_key_is_defined_and_answers_a_question(report, store):
    printed = set()
    for question in questions.QUESTIONS:
        words = ["job-1"] if question == "job" else []
        rows = answer(report, store, question, *words)
        assert not rows or [*rows[0]] == questions.QUESTIONS[question].columns.split()
        printed |= {*questions.QUESTIONS[question].columns.split()}
    assert printed == questions.FIELDS.keys()


def test_users_are_hashed_and_names_left_out_as_the_store_says(report, run_folder, tmp_path):
    store = tmp_path / "store"
    added = report("fleet", "add", store, run_folder, "--hash-users", "--keep", "user", "library")
    assert added.status == 0, added.err
    (row,) = answer(report, store, "top")
    assert (len(row["user_name"]), row["program"]) == (16, "")
    assert "node" not in "".join(
        path.read_bytes().decode("latin-1") for path in store.glob("*/*/*/*.parquet")
    )
    assert {row["run_id"] for row in answer(report, store, "job", "1")} == {"1"}
    assert (store / "store.json").stat().st_mode & 0o777 == 0o600
    assert report("fleet", "add", store, run_folder, "--keep", "host").status == 2


def test_a_user_s_jobs_are_removed(report, store):
    (row,) = answer(report, store, "top")
    assert report("fleet", "forget", store, "nobody-here").out == "0 jobs of nobody-here removed\n"
    said = report("fleet", "forget", store, row["user_name"])
    assert said.out == f"1 job of {row['user_name']} removed\n"
    assert answer(report, store, "top") == answer(report, store, "sizes") == []


def made(report, run_folder: Path, store: Path, question: str, fleet: fleets.Fleet) -> list[dict]:
    """Findings in a made-up fleet."""
    template = fleets.template_of(run_folder)
    jobs_write(store_create(store, None, False), list(fleets.jobs_of(fleet, [template])), "main")
    return answer(report, store, question)


def late_hosts(rows: list[dict]) -> list[str]:
    return [row["host"] for row in rows if row["is_late"]]


def test_a_node_that_is_slower_is_named_by_a_month_of_jobs(report, run_folder, tmp_path):
    fleet = fleets.Fleet(slow_node=17)
    assert late_hosts(made(report, run_folder, tmp_path / "store", "hosts", fleet)) == ["node017"]
    assert report("fleet", "hosts", tmp_path / "store").out.startswith("node017 came last in ")


def test_a_node_that_is_slow_in_one_user_s_jobs_alone_is_not_named(report, run_folder, tmp_path):
    fleet = fleets.Fleet(jobs=4000, own_node=17, slow=0.3, users=4)
    assert late_hosts(made(report, run_folder, tmp_path / "store", "hosts", fleet)) == []


def test_nobody_is_named_in_20_healthy_fleets(report, run_folder, tmp_path):
    """The first host of a third of the programs always comes last: its rank 0 has more work."""
    for seed in range(20):
        fleet = fleets.Fleet(jobs=1000, seed=100 + seed)
        assert (
            late_hosts(made(report, run_folder, tmp_path / f"store-{seed}", "hosts", fleet)) == []
        )


def test_a_call_that_takes_longer_since_a_day_is_named_with_what_is_new(
    report, run_folder, tmp_path
):
    rows = made(
        report,
        run_folder,
        tmp_path / "store",
        "changes",
        fleets.Fleet(jobs=3000, change_day=15, days=30),
    )
    assert {(row["program"], row["day"]) for row in rows} == {("app1", "2026-11-16")}
    assert {row["since"] for row in rows} == {"build_id.libmpi.so.40=b2"}
    assert all(0.25 < row["change"] < 0.35 for row in rows)


def test_no_call_has_changed_in_a_healthy_fleet(report, run_folder, tmp_path):
    assert made(report, run_folder, tmp_path / "store", "changes", fleets.Fleet(jobs=3000)) == []


def test_the_page_has_all_questions(report, run_folder, tmp_path):
    store = tmp_path / "store"
    made(report, run_folder, store, "hosts", fleets.Fleet(slow_node=17, change_day=15))
    assert report("fleet", "html", store).out == f"{store}/report.html written\n"
    page = (store / "report.html").read_text()
    assert [
        page.count(f"<h2>{each.title.replace(chr(39), '&#x27;')}</h2>")
        for name, each in questions.QUESTIONS.items()
        if name != "job"
    ] == [1] * 7
    assert "node017 came last in " in page and "build_id.libmpi.so.40=b2" in page
