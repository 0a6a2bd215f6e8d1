"""The rows in Python: a method for each command that gives rows, and docs/PYTHON.md, whose examples
are run."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import commprof_report as cp
import pytest
from commprof_report.commands import QUESTIONS as COMMANDS
from conftest import ROOT

METHODS = [
    name
    for name in vars(__import__("commprof_report.api", fromlist=["Run"]).Run)
    if name in COMMANDS
]
# several runs, rows of several kinds, screens, files
NOT_ROWS = {"fleet", "compare", "stuck", "top", "export", "replay", "html", "tune"}


def test_every_command_that_gives_rows_is_a_method():
    assert set(METHODS) == set(COMMANDS) - NOT_ROWS


@pytest.mark.parametrize("command", METHODS)
def test_a_method_gives_the_rows_of_its_command(command, report, run_folder):
    rows = getattr(cp.open(run_folder), command)()
    answer = report(command, "--json", run_folder)
    assert answer.status == 0, answer.err
    assert [row._asdict() for row in rows] == answer.rows


def test_options_are_keywords(report, run_folder):
    run = cp.open(str(run_folder))
    rows = run.sizes(
        call=["Allreduce", "MPI_Bcast"], bytes="1K:", rank=0, per_rank=True, sort="bytes", top=2
    )
    words = "--call Allreduce --call MPI_Bcast --bytes 1K: --rank 0 --per-rank --sort bytes --top 2"
    answer = report("sizes", *words.split(), "--json", run_folder)
    assert [row._asdict() for row in rows] == answer.rows
    assert len(rows) == 2 and rows[0].rank == 0


def test_options_that_are_wrong_raise(run_folder, tmp_path):
    run = cp.open(run_folder)
    with pytest.raises(TypeError, match="no option 'colour'; it has call, "):
        run.sizes(colour="red")
    with pytest.raises(cp.ReportError, match="sizes: argument --bytes: red"):
        run.sizes(bytes="red")
    with pytest.raises(cp.ReportError, match="no such file"):
        cp.open(tmp_path / "nothing")


@pytest.mark.slow
def test_examples_of_the_page_say_what_the_page_says():
    environment = os.environ | {"PYTHONPATH": str(ROOT / "report")}
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "docs/python_examples.py"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (ROOT / "docs/PYTHON.md").read_text()


def test_the_working_directory_has_the_newest_run(run_folder, monkeypatch):
    monkeypatch.chdir(run_folder.parent)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert cp.open().summary()[0].world_size == 4
    assert [str(each.message) for each in said] == ["run: the newest run here"]
