"""Every report command on runs that were made a moment ago, under each MPI."""

import json
import subprocess

import pytest

from .harness import REPORT
from .reporter import text as report


def report_as_a_process(*arguments):
    finished = subprocess.run(
        [str(REPORT), *map(str, arguments)], capture_output=True, text=True, timeout=600
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.fixture
def run(profile):
    return profile("collectives", 4)


def test_summary_is_the_default_and_names_program_ranks_and_calls(run, mpi):
    text = report("summary", run.folder)
    assert report_as_a_process(run.folder) == text
    assert "calls.py" in text and "4 ranks" in text and "MPI_" in text
    assert mpi.says.split()[0] in text


@pytest.mark.parametrize("command", ["calls", "sizes", "communicators", "ranks", "latency"])
def test_a_command_answers_in_json_and_csv(run, command):
    rows = json.loads(report(command, run.folder, "--json"))
    lines = report(command, run.folder, "--csv").splitlines()
    assert len(rows) > 0
    assert len(lines) == len(rows) + 1
    assert lines[0].split(",") == list(rows[0])


def test_merge_makes_one_database_that_answers_alike(run, tmp_path):
    merged = tmp_path / "merged.db"
    report("merge", run.folder, merged)
    assert json.loads(report("sizes", merged, "--json")) == json.loads(
        report("sizes", run.folder, "--json")
    )
    assert report("export", merged) == report("export", run.folder) != ""
