"""JSON that others have written or changed: experiments, their runs, canaries. One line says what
is wrong; other lines are read."""

from __future__ import annotations

import copy
import json
import random

import pytest
from commprof_report import experiment_main
from commprof_report.base import ReportError
from commprof_report.experiment.plan import canaries_read, folder_of
from commprof_report.experiment import plan as plans
from commprof_report.experiment.plan import Arm, Plan, Run

CASES = 400
PLAN = Plan([Arm("a", "mpirun {} x"), Arm("b", "srun {} x")], 3, 7, "/tmp")
RUN = Run(1, "a", "block-01/a", plans.OK, 1.5, "")
DEEP = "[" * 200_000 + "]" * 200_000
RAW = (
    *"Infinity -Infinity NaN 1e999 -1e999 [] {} null true -1 0 1.5 1e308 , \ufeff1".split(),
    *("9" * 400, "9" * 100_000, DEEP, '{"a": ' * 5000, str(1 << 63), "", " "),
    *('"\\ud800"', '"\\u0000"', '"\udcff"', '""', '"x"', '[{"a": 1}]', '{"a": []}'),
)
KEYS = ("name", "command", "block", "seconds", "arms")


def damaged(value: object, chance: random.Random) -> bytes:
    """The JSON of a value in which one part, at any depth, is another."""
    mark = "a mark that is nowhere else"
    whole = {"all": copy.deepcopy(value)}
    holder, key = whole, "all"
    while isinstance(holder[key], (dict, list)) and holder[key] and chance.random() < 0.8:
        holder = holder[key]
        key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key] = mark
    text = json.dumps(whole["all"]).replace(json.dumps(mark), chance.choice(RAW))
    if chance.random() < 0.1:
        text = text.replace("{", '{"%s": 1, ' % chance.choice(KEYS))  # some keys are there twice
    data = text.encode("utf-8", "surrogateescape")
    return data[: chance.randrange(len(data) + 1)] if chance.random() < 0.1 else data


def plan_values() -> dict:
    arms = [arm._asdict() for arm in PLAN.arms]
    return {"format": plans.FORMAT, "version": plans.VERSION, **PLAN._asdict(), "arms": arms}


def test_a_plan_of_any_damage_is_read_or_refused_in_one_line(tmp_path):
    for number in range(CASES):
        (tmp_path / plans.EXPERIMENT).write_bytes(damaged(plan_values(), random.Random(number)))
        try:
            plan = plans.plan_read(tmp_path)
            assert plan.arms and plan.blocks >= 1
            plans.order_of(plan, 0)
        except ReportError as error:
            assert len(str(error)) < 300 + len(str(tmp_path)) and "\n" not in str(error), number
            assert not str(error).endswith(": "), number


def test_a_run_of_any_damage_is_read_or_skipped_and_the_others_are_read(tmp_path):
    good = json.dumps(RUN._asdict()).encode()
    for number in range(CASES):
        bad = damaged(RUN._asdict(), random.Random(number)).replace(b"\n", b" ")
        (tmp_path / plans.RUNS).write_bytes(b"\n".join([good, bad, good]))
        runs = plans.runs_of(tmp_path, PLAN)
        assert [run._replace(status=plans.OK) for run in (runs[0], runs[-1])] == [RUN, RUN], number
        assert plans.complete_blocks(PLAN, runs) == []
        assert all(0 <= run.seconds < 1e16 for run in runs)


def test_a_canary_of_any_damage_is_read_or_skipped(tmp_path):
    run = tmp_path / "run"
    folder = folder_of(run)
    folder.mkdir()
    for number in range(CASES):
        (folder / "host").write_bytes(
            damaged({"arithmetic_ns": 5, "memory_ns": 7}, random.Random(number))
        )
        for found in canaries_read(run).values():
            assert all(0 < value < 1e16 for value in found), number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": Infinity}', "is damaged: Infinity is no number that can be read"),
        ('{"format": 1e999}', "is damaged: 1e999 is no number that can be read"),
        (DEEP, "is damaged: it is nested too deeply"),
        ('{"format": "commprof-experiment", "format": 1}', "is damaged: a key is in it twice"),
        ("[]", "is damaged: there is no object with 'format'"),
        ("{}", "is damaged: it has no 'format'"),
        ('{"format": "\\ud800"}', "is damaged: 'format' has half a character"),
        ('"\udcff"', "is damaged: byte 1 is not UTF-8"),
        ("9" * 5000, "is damaged: a number has 5,000 digits"),
        (" " * (1 << 20) + "1", "is damaged: it has more than 1 MiB"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(tmp_path, monkeypatch, capsys, text, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / plans.EXPERIMENT).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert experiment_main.main(["status", "."]) == 1
    assert capsys.readouterr().err == f"commprof-experiment: experiment.json: {said}\n"
