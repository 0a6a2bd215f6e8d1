"""Several folders as one run, a folder of run folders, and the newest run where none is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import planted
import pytest
from commprof_report.run import rank_files
from planted import SECOND, START_UNIX_NS


@pytest.fixture
def split(tmp_path) -> list[Path]:
    """The planted run of four ranks, a folder for each."""
    return [
        planted.write_databases(tmp_path / "split" / f"vm-{rank.world_rank}", [rank])
        for rank in planted.training_run()
    ]


def other_job(run_id: str = "job-2") -> list[planted.Rank]:
    ranks = planted.training_run()
    for rank in ranks:
        rank.run_id = run_id
        rank.start_unix_ns += 3_600 * planted.SECOND
        rank.facts["program"] = "solver"
    return ranks


def details(answer) -> list[str]:
    return [line for line in answer.err.splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("command", ("summary", "export"))
def test_the_folders_of_one_run_read_like_one_folder(report, run_folder, split, command):
    whole, parts = report(command, run_folder, "--json"), report(command, *split, "--json")
    assert (parts.status, parts.out, parts.err) == (0, whole.out, "")


def test_folders_of_two_jobs_are_refused_in_one_line(report, split, tmp_path):
    other = planted.write_databases(tmp_path / "other", other_job())
    answer = report("summary", split[0], other)
    assert (answer.status, answer.out, answer.err.count("\n")) == (1, "", 1)
    assert answer.err.startswith("hvprof-report: these folders: hold 2 runs, 'job-1' of ")
    assert f"in {split[0]} and 'job-2' of " in answer.err and answer.err.endswith(
        f"in {other}: name the folders of one, or ask hvprof-report compare\n"
    )


def test_two_folders_with_the_same_rank_are_refused_in_one_line(report, split, tmp_path):
    again = shutil.copytree(split[0], tmp_path / "again")
    answer = report("summary", *split, again)
    said = f"are not one run: rank 0 is in {split[0]} and in {again}"
    assert (answer.status, answer.err) == (1, f"hvprof-report: these folders: {said}\n")


@pytest.mark.parametrize("most, runs", ((4, 0), (5, 1), (6, 2), (7, 3), (100, 3)))
def test_a_search_ends_with_as_many_files_and_folders_as_may_be_looked_at(
    tmp_path, monkeypatch, most, runs
):
    (tmp_path / "rank-9.db").touch()
    for number in range(3):
        planted.write_databases(tmp_path / f"job-{number}", other_job(f"job-{number}")[:1])
    monkeypatch.setattr(rank_files, "MOST_ENTRIES", most)
    assert len(rank_files.runs_find(tmp_path)) == runs


def test_links_are_not_followed_and_what_cannot_be_read_is_passed_over(report, tmp_path):
    planted.write_databases(tmp_path / "runs" / "good", other_job())
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "rank-0.db").write_bytes(b"no database")
    (tmp_path / "runs" / "link").symlink_to(tmp_path)
    assert len(details(report("summary", tmp_path / "runs"))) == 1


@pytest.mark.parametrize("words", [(), ("summary",), ("--json",), ("calls",)])
def test_without_a_run_the_newest_here_is_read(report, tmp_path, monkeypatch, words):
    planted.write_databases(tmp_path / "commprof-train-1", planted.training_run())
    planted.write_databases(tmp_path / "commprof-solver-2", other_job())
    monkeypatch.chdir(tmp_path)
    answer = report(*words)
    said = "hvprof-report: commprof-solver-2: the newest run here\n"
    assert (answer.status, answer.err) == (0, said)


def test_without_any_run_here_it_is_one_line_and_status_2(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = report()
    said = "RUN: there is no run here; name a run folder (see hvprof-report --help)"
    assert (answer.status, answer.err) == (2, f"hvprof-report: {said}\n")


# A snapshot


def test_a_snapshot_is_no_early_end(report, run_folder):
    """MPI_Pcontrol(3) writes a wall time, and no end."""

    for path in run_folder.iterdir():
        planted.execute(path, "UPDATE rank SET ended = 'running', end_unix_ns = NULL")
    answer = report("summary", run_folder, "--json")
    assert (
        answer.err,
        answer.rows[0]["early_ended_ranks"],
        answer.rows[0]["wall_is_estimate"],
    ) == ("", 0, 0)
    row = report("ranks", run_folder, "--per-rank", "--json").rows[0]
    assert (row["state"], row["last_unix_ns"]) == ("snapshot", START_UNIX_NS + 10 * SECOND)
