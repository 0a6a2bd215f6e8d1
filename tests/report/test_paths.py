"""A run by whatever path it is named: the same answer, or one line."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import planted
import pytest

NOT_UTF_8 = os.fsdecode(b"na\xefve")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """In it: run/ of all ranks, parts/0 to parts/3 of one rank each, and other names of them."""
    planted.write_databases(tmp_path / "run", planted.training_run())
    for rank in planted.training_run():
        planted.write_databases(tmp_path / "parts" / str(rank.world_rank), [rank])
    (tmp_path / "link").symlink_to("run")
    (tmp_path / NOT_UTF_8).symlink_to("parts/0")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("no run")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_of(folder: str, here: Path) -> list[str]:
    return [
        folder,
        f"{folder}/",
        f"./{folder}",
        f"parts/../{folder}",
        f"{here}/{folder}",
        f"{here}/../{here.name}//{folder}/.",
    ]


def test_a_run_has_one_answer_by_all_of_its_names(report, here):
    wanted = report("calls", "run", "--json").out
    for name in [*names_of("run", here), *names_of("link", here)]:
        answer = report("calls", name, "--json")
        assert (answer.status, answer.out, answer.err) == (0, wanted, ""), name


def test_a_run_that_is_named_twice_counts_once_and_nothing_is_said(report, here):
    wanted = report("calls", "run", "--json").out
    for names in itertools.product(
        ["run", f"{here}/run", "link/"], ["run", "parts/../run", f"{here}/link", "run/rank-1.db"]
    ):
        answer = report("calls", *names, "--json")
        assert (answer.status, answer.out, answer.err) == (0, wanted, ""), names


def test_what_is_no_run_is_one_line(report, here):
    strange = ("nothing", "file", "file/x", "pipe", "loop", "parts", "run/rank-9.db", "/dev/null")
    for name in (*strange, "x" * 300, here / "nothing", NOT_UTF_8 + "x"):
        for words in ([name], ["run", name], [name, here / "run"]):
            answer = report("calls", *words)
            assert answer.status == 1 and answer.out == "", words
            lines = [line for line in answer.err.splitlines() if not line.startswith("  ")]
            assert (
                len(lines) == 1
                and lines[0].startswith("hvprof-report: ")
                and "Error" not in lines[0]
            ), answer.err
            assert answer.err.isprintable() or answer.err.replace("\n", "").isprintable()
