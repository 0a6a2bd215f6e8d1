"""Every command answers on any run that is well-formed, and sums that it prints add up."""

from __future__ import annotations

import random
import re

import pytest
from commprof_report import main as program
from commprof_report.commands import COMMANDS
from commprof_report.display import pictures
from fuzz import COMMANDS as WORDS
from random_runs import RandomRun

RUNS, EACH = 100, 3
NUMBER = r"(\d[\d,]*\.?\d*)"
TERM = rf"{NUMBER} [^=;+]*"
SUM = re.compile(rf"{NUMBER} (?:ns|us|ms|s|min|h|d) = {TERM}(?:\+ {TERM})*")
BESIDE = {"compare", "replay"}  # of two runs, and of programs: files of their own


def test_every_command_is_tried():
    assert {words[0] for words in WORDS} | BESIDE >= {*COMMANDS}


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_well_formed_run_is_answered(report, tmp_path, monkeypatch, seed):
    monkeypatch.setattr(pictures, "is_possible", lambda: False)  # drawing takes most of the time
    chance = random.Random(seed)
    run = RandomRun(chance).written(tmp_path / "run.db")
    out = tmp_path / "out"
    out.mkdir()
    for command, *words in [("steps",), *chance.sample(WORDS, EACH)]:
        answer = report(command, run, *(word.replace("OUT", str(out)) for word in words))
        assert answer.status in (program.EXIT_READ, program.EXIT_NOTHING_READ, program.EXIT_USAGE)
        assert "damaged" not in answer.err and "fit together" not in answer.err, answer.err
        adds_up(answer.prose)
    for page in out.glob("*.html"):
        adds_up(page.read_text())


def adds_up(text: str) -> None:
    for found in SUM.finditer(text):
        whole, *parts = (
            round(float(number.replace(",", "")) * 1000)
            for number in re.findall(rf"(?:^|= |\+ ){NUMBER}", found[0])
        )
        assert whole == sum(parts), found[0]


def test_a_fault_of_an_analysis_leaves_the_rest(capsys, monkeypatch, run_folder, tmp_path):
    """One line, an exit status, and what does not depend on it."""
    page = tmp_path / "page.html"

    def told(*words: object) -> tuple[str, str]:
        assert program.main([*map(str, words)]) == program.EXIT_FAULT
        said = capsys.readouterr()
        assert said.err.count("not analysed, because of an error in ") == 1
        return said.out, said.err

    def broken(*_: object) -> None:
        raise IndexError("planted")

    for place, name, commands, rest in PLANTED:
        with monkeypatch.context() as patch:
            patch.setattr(f"commprof_report.{place}", broken)
            for command in commands:
                out, err = told(command, run_folder)
                assert f"hvprof-report: {name}: " in err and " line " in err
                assert "(IndexError: planted); please report it" in err
                assert rest in out
            told("html", run_folder, "--output", page)
        assert f"{name}: not analysed" in page.read_text() and "Rank by rank" in page.read_text()


PLANTED = (  # where, what is said, commands beside the page, and what they say all the same
    ("steps.stages.step_costs", "Steps", ("summary",), "Waiting  "),
    ("steps.stages.marked_rows", "Steps", ("summary", "hvprof"), "MPI_"),
    ("late.late_ranks.blame", "Waiting", ("summary", "steps"), " MPI"),
    ("late.late_ranks.blame", "Waiting", ("advise",), "No advice: no rule had what it needs."),
    ("advice.advice._best_sizes", "Advice, best sizes", ("advise",), "Looked for and not found"),
    ("advice.advice._together", "Advice, all together", ("advise",), "Looked for and not found"),
)
