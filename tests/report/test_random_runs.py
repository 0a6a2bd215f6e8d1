"""Every command answers on any run that is well-formed, and sums that it prints add up."""

from __future__ import annotations

import argparse
import random
import re
from pkgutil import resolve_name

import pytest
from cases import by_seed
from commprof_report import main as program
from commprof_report.commands import QUESTIONS as COMMANDS, common
from commprof_report.late.late_ranks import Late
from commprof_report.late.wait_split import FILES, TRANSFER, UNSPLIT, WAITING
from commprof_report.run import selection
from commprof_report.run.alignment import align
from commprof_report.steps.run_view import run_view
from commprof_report.steps.steps_summary import steps_summary
from fuzz import COMMANDS as WORDS
from random_runs import RandomRun

RUNS, EACH = 100, 3
FIRST_RUNS, FIRST_PLANTED = 24, 3  # the others are slow
NUMBER = r"(\d[\d,]*\.?\d*)"
TERM = rf"{NUMBER} [^=;+]*"
SUM = re.compile(rf"{NUMBER} (?:ns|us|ms|s|min|h|d) = {TERM}(?:\+ {TERM})*")
OF_EACH = {words[0]: words for words in reversed((*WORDS, ("compare",)))}
ONE_EACH = tuple(OF_EACH[command] for command in OF_EACH if command in COMMANDS)
SAID = re.compile(
    r"hvprof-report: (.+): not analysed, because of an error in \S+ line \d+ "
    r"\(IndexError: planted\); please report it"
)
PLANTED = (  # an analysis, what is said, and the commands that fail with it
    ("run.alignment:align", "Clocks", "compare"),
    ("late.late_ranks:Late.__init__", "Waiting", ""),
    ("gpu.gpu_activity:gpu", "GPU", "gpu"),
    ("advice.advice:_together", "Advice, all together", ""),
    ("late.sentences:headline", "Waiting", ""),
    ("steps.step_costs:step_costs", "Steps", "compare"),
    ("roles.world:world_of", "Communicators", ""),
    ("run.crowding:_of_hosts", "Crowded", ""),
    ("calls.by_size:odd_sizes", "Odd sizes", ""),
)
NO_ADVICE = "No advice: an analysis that it needs has failed."
# of several runs, and of programs: files of their own
BESIDE = {"compare", "fleet", "replay", "tune"}


def test_every_command_is_tried():
    assert {words[0] for words in WORDS} | BESIDE >= {*COMMANDS}


@pytest.mark.parametrize("seed", by_seed(range(RUNS), FIRST_RUNS))
def test_a_well_formed_run_is_answered(report, tmp_path, no_pictures, seed):
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


@pytest.mark.parametrize("seed", by_seed(range(0, RUNS, 4), FIRST_RUNS))
def test_the_parts_of_each_step_add_up_to_it_in_every_answer(tmp_path, seed):
    path = RandomRun(random.Random(seed)).written(tmp_path / "run.db")
    given = argparse.Namespace(run=[path], **dict.fromkeys(selection.FILTERS))
    run = common.open_selected(given, with_samples=True)
    alignment = align(run.connection)
    waits = Late(run, alignment)
    for loop in (None, 1):
        split = steps_summary(run, alignment, late=waits, loop=loop)
        unsplit = steps_summary(run, alignment, loop=loop)
        assert split.costs.is_driven == unsplit.costs.is_driven
        for row, other in zip(split.costs.steps, unsplit.costs.steps):
            parts = (row.communication_ns, row.file_ns, row.outside_ns)
            assert parts == pytest.approx((other.communication_ns, other.file_ns, other.outside_ns))
            if split.costs.is_driven:
                assert sum(parts) == pytest.approx(row.step_ns, abs=0.01)
            if row.wait_ns is not None:
                inside_ns = row.wait_ns + row.transfer_ns + row.unsplit_ns
                assert inside_ns == pytest.approx(row.communication_ns, abs=0.01)
        view = run_view(run.connection, split, alignment, waits)
        if view and not view.left_out["calls"] and len(alignment.clocks) == 1:
            for step in view.steps:
                drawn_as_it_is_told(step, view.pieces)


def drawn_as_it_is_told(step, pieces) -> None:
    """Waits of the thread that drives the steps, where waits are known."""
    drawn = dict.fromkeys((WAITING, TRANSFER, UNSPLIT, FILES), 0)
    for rank, state, *piece_ns in pieces.tuples("world_rank state begin_ns end_ns"):
        begin_ns, end_ns = step.times.get(rank, (0, 0))
        inside_ns = min(piece_ns[1], end_ns) - max(piece_ns[0], begin_ns)
        if state in drawn and step.row.wait_ns is not None:
            drawn[state] += max(0, inside_ns) / len(step.times)
    told = (step.row.wait_ns, step.row.transfer_ns, step.row.unsplit_ns, step.row.file_ns)
    assert step.row.wait_ns is None or [*drawn.values()] == pytest.approx(told, abs=1)


@pytest.mark.parametrize(
    ("place", "name", "rest_on_it"),
    [
        pytest.param(*each, marks=[pytest.mark.slow] * (number >= FIRST_PLANTED))
        for number, each in enumerate(PLANTED)
    ],
)
def test_a_fault_of_an_analysis_leaves_the_rest(
    capsys, monkeypatch, run_folder, equal, tmp_path, no_pictures, place, name, rest_on_it
):
    """Any command has one line, an exit status, and what does not depend on the analysis."""
    analysis = resolve_name(f"commprof_report.{place}")

    def broken(*_: object, **more: object) -> None:
        raise IndexError("planted")

    there = broken.__code__.replace(co_filename=analysis.__code__.co_filename)
    monkeypatch.setattr(analysis, "__code__", there)
    told = {}
    for command, *words in ONE_EACH:
        given = [word.replace("OUT", str(tmp_path)) for word in words]
        runs = equal[:2] if command == "compare" else [run_folder]
        status = program.main([command, *map(str, runs), *given])
        out, err = capsys.readouterr()
        said = SAID.findall(err)
        assert (status == program.EXIT_FAULT) == bool(said) and len({*said}) == len(said), err
        assert {*said} <= {name, command, *rest_on_it.split()} and "Traceback" not in err
        told[command] = said
        assert said or out or "OUT" in str(words)
        assert not said or command != "advise" or NO_ADVICE in out or "Looked for" in out
    assert {command for command, said in told.items() if command in said} == {*rest_on_it.split()}
    page = (tmp_path / "page.html").read_text()
    assert (f"{name}: not analysed" in page) == bool(told["html"]) and "Rank by rank" in page
