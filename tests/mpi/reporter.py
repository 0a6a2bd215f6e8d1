"""hvprof-report in the tests' own process: Python and the package start once, not for each question
that a test asks. That the program starts as one is shown by tests/report/test_command_line.py and
test_reports_on_fresh_runs.py."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from .harness import Outcome
from .libraries import REPOSITORY


@lru_cache
def the_program() -> Callable[[list[str]], int]:
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(REPOSITORY / "report"))
    from commprof_report.main import main  # here, where the path is set

    return main


def answer(*words: object) -> Outcome:
    said, complained = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with redirect_stdout(said), redirect_stderr(complained):
        status = the_program()([str(word) for word in words])
    texts = []
    for stream in (said, complained):
        stream.seek(0)
        texts.append(stream.read())
    return Outcome(status, *texts)


def text(*words: object) -> str:
    outcome = answer(*words)
    assert outcome.exit_status == 0, outcome
    return outcome.stdout


def rows(*words: object) -> list[dict]:
    return json.loads(text(*words, "--json"))


@lru_cache(maxsize=2048)
def rows_of_ended(command: str, folder: Path, *options: str) -> list[dict]:
    """rows() of a job that has ended: what is said of it stays the same."""
    return rows(command, folder, *options)


@contextmanager
def another_run(folder: Path) -> Iterator[Path]:
    """A copy under another job id: a run is not compared with itself."""
    with TemporaryDirectory() as aside:
        copy = Path(aside) / "run.db"
        if folder.is_file():
            shutil.copy(folder, copy)
        else:
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".*"))
        for path in copy.glob("*.db") if copy.is_dir() else [copy]:
            with closing(sqlite3.connect(path)) as database, database:
                database.execute("UPDATE rank SET run_id = run_id || '-2'")
        yield copy
