"""Common parts of the tests of the reporter: the package, a planted run, and a way to run commands
on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

sys.dont_write_bytecode = True
os.environ.pop("COLUMNS", None)  # set where readline was imported, as in workers of newer pytests
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "report"), str(Path(__file__).resolve().parent)]

pytest.register_assert_rewrite("cases")
import compared_runs  # noqa: E402
import planted  # noqa: E402
import read_once  # noqa: E402
from browser import Browser  # noqa: E402
from commprof_report.display import pictures, render  # noqa: E402
from commprof_report.main import EXIT_FAULT, main  # noqa: E402
from planted_job import Job  # noqa: E402

# Deque's axe-core 4.12.1, as the Python package registry has it; it is not a part of this project.
AXE = "axe_playwright_python-0.1.8-py3-none-any.whl"
AXE_REQUIREMENT = (
    "axe-playwright-python==0.1.8 "
    "--hash=sha256:fdd263c998388f1a8e67cad02677e612d946248bd44d163be5e8650ea31f95f8\n"
)


class Answer(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict]:
        return json.loads(self.out)

    @property
    def prose(self) -> str:
        """Without the line breaks of a terminal."""
        return " ".join(self.out.split())


@pytest.fixture(autouse=True)
def heads_are_unique(monkeypatch):
    """In every table that a test has printed or put on a page, with the columns that only some runs
    have."""
    for name in ("text_table", "table"):

        def checked(columns, *arguments, made=getattr(render, name)):
            heads = [column.head for column in columns]
            assert len(set(heads)) == len(heads), f"heads twice: {heads}"
            return made(columns, *arguments)

        monkeypatch.setattr(render, name, checked)


@pytest.fixture
def report(capsys):
    """Runs hvprof-report with the given words, in this process."""

    def run(*words: object) -> Answer:
        capsys.readouterr()
        answer = Answer(main([str(word) for word in words]), *capsys.readouterr())
        is_gate = "--fail-if" in words  # whose "no answer" has this status, too
        assert answer.status != EXIT_FAULT or is_gate, answer.err
        return answer

    return run


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def run_folder(tmp_path) -> Path:
    """The planted run of four ranks, as databases."""
    return planted.write_databases(tmp_path / "run", planted.training_run())


@pytest.fixture
def ledger_folder(tmp_path) -> Path:
    """The same run, as ledgers."""
    return planted.write_ledgers(tmp_path / "ledgers", planted.training_run())


@pytest.fixture(scope="session")
def equal(tmp_path_factory) -> list[Path]:
    """Two sides of planted runs without a difference."""
    return compared_runs.sides(tmp_path_factory.mktemp("equal"), {})


@pytest.fixture(scope="session")
def slower(tmp_path_factory) -> list[Path]:
    """Two sides, of which the large Allreduces of the second take 30 % more."""
    return compared_runs.sides(tmp_path_factory.mktemp("slower"), {compared_runs.LARGE: 1.3})


@pytest.fixture
def no_pictures(monkeypatch) -> None:
    """Drawing takes most of the time of a page."""
    monkeypatch.setattr(pictures, "is_possible", lambda: False)


@pytest.fixture(scope="module")
def figures_once():
    with read_once.figures_once():
        yield


@pytest.fixture
def late(report, tmp_path) -> Callable[..., list[dict]]:
    """The rows that `late` gives for a job, by key; of the run as a whole, or by rank, host, call
    or wait state."""

    def ask(job: Job, by: str = "rank", *words: object) -> list[dict]:
        answer = report("late", job.write(tmp_path / "run.db"), "--json", "--by", by, *words)
        assert answer.status == 0, answer.err
        return json.loads(answer.out)

    return ask


@pytest.fixture
def browser(chromium):
    """Whatever a test does, no page complains, and none requests anything."""
    chromium.complaints.clear()
    chromium.requests.clear()
    yield chromium
    assert chromium.complaints == []
    assert {url.partition(":")[0] for url in chromium.requests} <= {"file", "data"}
    assert len({url for url in chromium.requests if url.startswith("file")}) <= 1


@pytest.fixture(scope="module")
def axe(tmp_path_factory) -> str:
    """The script that finds what keeps people from reading a page; got once for a checkout."""
    folder = ROOT / "build" / "axe"
    if not (folder / AXE).exists():
        requirements = tmp_path_factory.mktemp("axe") / "requirements.txt"
        requirements.write_text(AXE_REQUIREMENT)
        pip = shutil.which("pip3") or shutil.which("pip")
        options = "download -q --no-deps --require-hashes --retries 1".split()
        command = [pip, *options, "-d", folder, "-r", requirements]
        if not pip or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("axe-core cannot be had: no pip, or no registry of Python packages")
    with zipfile.ZipFile(folder / AXE) as wheel:
        return wheel.read("axe_playwright_python/axe.min.js").decode()


@pytest.fixture
def export(report, tmp_path):
    """export(ranks, *traces): the events of the timeline with these; nothing is said."""

    def exported(ranks, *traces, words=()):
        folder = planted.write_databases(tmp_path / "run", ranks)
        answer = report("export", folder, "--format", "perfetto", *words, "--with-trace", *traces)
        assert (answer.status, answer.err) == (0, "")
        return json.loads(
            answer.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")
        )["traceEvents"]

    return exported


@pytest.fixture
def refusal(report, tmp_path):
    """refusal(ranks, *traces): the line that is said instead of a timeline."""

    def refused(ranks, *traces):
        folder = planted.write_databases(tmp_path / f"run {len(list(tmp_path.iterdir()))}", ranks)
        answer = report("export", folder, "--format", "perfetto", "--with-trace", *traces)
        assert (answer.status, answer.out, answer.err.count("\n")) == (1, "", 1)
        return answer.err

    return refused
