"""The program as users start it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys

import planted
import pytest
from commprof_report.commands import QUESTIONS as COMMANDS
from commprof_report.main import main
from planted import ROOT
from work import counted

PROGRAM = ROOT / "report" / "hvprof-report"


def start(*words: object, program=PROGRAM, **options) -> subprocess.CompletedProcess:
    options.setdefault("env", {**os.environ})["PYTHONDONTWRITEBYTECODE"] = ""
    command = [sys.executable, program, *words]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_it_runs_from_the_source_tree_through_a_link(run_folder, tmp_path):
    os.symlink(PROGRAM, tmp_path / "hvprof-report")
    done = start("calls", run_folder, program=tmp_path / "hvprof-report")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("call ")


@pytest.mark.slow
def test_it_runs_where_it_is_installed(run_folder, tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(PROGRAM, tmp_path / "bin")
    package = tmp_path / "share" / "commprof" / "commprof_report"
    shutil.copytree(ROOT / "report" / "commprof_report", package)
    shutil.copytree(ROOT / "src", package / "src")  # `make install` takes what is read
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = start("calls", run_folder, program=tmp_path / "bin" / "hvprof-report", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "share").rglob("*.pyc")), "each start compiles all modules again"


def printed(program: str) -> str:
    words, report = [sys.executable, "-c", program], ROOT / "report"
    return subprocess.run(words, cwd=report, stdout=subprocess.PIPE, text=True).stdout


def test_help_and_version_import_no_command():
    ask = (
        "import sys; from commprof_report.main import main\n"
        "try: main(['--help'])\nexcept SystemExit"
    )
    said = printed(f"{ask}: print([*sys.modules])")
    assert "commands.calls" not in said and "commprof_report.main" in said


def test_a_command_imports_no_other():
    ask = "import sys; from commprof_report.main import main; main(['calls', '/nowhere'])"
    names = "name for name in sys.modules if '.commands.' in name or '.late' in name"
    said = printed(f"{ask}; print(*({names}))")
    assert {name.rpartition(".")[2] for name in said.split()} == {"common", "counters"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert "RUN" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sumary", "run"], "sumary: neither a command nor a run; did you mean summary?"),
        (["communi", "run"], "communi: neither a command nor a run; did you mean communicators?"),
        (
            ["forecast", "run", "run"],
            f"forecast: neither a command nor a run; the commands are {', '.join(COMMANDS)}",
        ),
        (["no/run"], "no/run: no such file or folder"),
    ],
)
def test_a_word_that_is_no_command_is_named_with_the_nearest(
    report, run_folder, monkeypatch, words, said
):
    monkeypatch.chdir(run_folder.parent)
    answer = report(*words)
    assert (answer.out, answer.err) == ("", f"hvprof-report: {said}\n")
    assert answer.status == (1 if "/" in words[0] else 2)


def test_a_run_may_have_any_name(report, run_folder, monkeypatch):
    monkeypatch.chdir(run_folder.parent)
    os.rename("run", "sumary")
    assert report("sumary").status == 0


def test_a_reader_that_leaves_early_is_no_error(run_folder):
    command = f"{sys.executable} -B {PROGRAM} export {run_folder} | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[\n", "")


def test_a_full_disk_is_one_line(run_folder):
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-B", PROGRAM, "calls", run_folder]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.startswith(b"hvprof-report: output: ") and done.stderr.count(b"\n") == 1


def test_it_is_silent_about_its_progress_in_a_pipe(run_folder):
    assert start("calls", run_folder).stderr == ""


@pytest.mark.slow
def test_a_plain_ascii_terminal_is_served(tmp_path):
    rank = planted.training_rank(0)
    rank.facts["command_line"] = "python3 übung.py"
    planted.write_databases(tmp_path / "run", [rank])
    done = start("summary", tmp_path / "run", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and "\\xfcbung.py" in done.stdout


@pytest.mark.slow
def test_a_thousand_ranks_are_merged_with_the_same_work_for_each(report, tmp_path):
    with counted() as hundred:
        assert merged_ranks(report, tmp_path / "hundred", 100) == 100
    with counted() as thousand:
        assert merged_ranks(report, tmp_path / "thousand", 1_000) == 1_000
    assert thousand.is_at_most(11, hundred)


def merged_ranks(report, folder, ranks: int) -> int:
    """How many ranks the merged database of so many files holds."""
    durations = [1_000 * step for step in range(1, 30)]
    cells = [planted.Cell("MPI_Allreduce", 8 * size, durations) for size in range(10)]
    (folder / "run").mkdir(parents=True)
    template = planted.write_database(folder / "template.db", planted.Rank(0, ranks, cells=cells))
    for rank in range(ranks):
        shutil.copy(template, folder / "run" / f"rank-{rank}.db")
        tables = ("rank", "fact", "thread", "cell")
        change = "; ".join(f"UPDATE {table} SET world_rank = {rank}" for table in tables)
        planted.execute(folder / "run" / f"rank-{rank}.db", change)
    answer = report("merge", folder / "run", folder / "all.db")
    assert (answer.status, answer.err) == (0, "")
    return sqlite3.connect(folder / "all.db").execute("SELECT count(*) FROM rank").fetchone()[0]
