"""commprof-experiment, with arms that take a planted run for the profile of a job: order, failures,
interruptions."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median

import pytest
from cases import of
from commprof_report import experiment_main
from commprof_report.base import ReportError
from commprof_report.experiment import plan as plans
from commprof_report.experiment.plan import Arm, Plan, Run, canaries_read, folder_of, is_replay
from conftest import Answer
from planted import ROOT, SECOND
from planted_job import HostClock, Job
from test_replay import signed

PROGRAM = ROOT / "report" / "commprof-experiment"
# ARM COMMPROF-RUN --canary FOLDER COMMPROF-RUN --output FOLDER: fails, or waits, as often as the
# files next to it say.
JOB = """
here=$(dirname "$0")
echo "$1 $7" >>"$here/log"
mkdir -p "$4" && echo '{"arithmetic_ns": 1000, "memory_ns": 2000}' >"$4/node00"
if [ -s "$here/fail-$1" ]; then sed -i 1d "$here/fail-$1"; echo failing; exit 7; fi
if [ -p "$here/wait-$1" ]; then exec cat "$here/wait-$1"; fi
if [ -e "$here/nothing-$1" ]; then exit 0; fi
if [ -e "$here/slow-$1" ]; then
    trap 'sleep 0.5; echo "$1 ended" >>"$here/log"; exit 7' TERM
    while :; do sleep 0.1; done
fi
mkdir -p "$7" && cp "$here/rank-0.db" "$7"
"""


@pytest.fixture
def here(tmp_path) -> Path:
    (tmp_path / "job.sh").write_text(JOB)
    (tmp_path / "commprof-run").write_text("#!/bin/sh\n")
    (tmp_path / "commprof-run").chmod(0o755)
    job = Job([HostClock(77)] * 2)
    for step in range(1, 9):
        job.collective("MPI_Allreduce", [step * SECOND // 10] * 2, [1_000_000] * 2)
    job.write(tmp_path / "rank-0.db")
    return tmp_path


def words(here: Path, *more: object) -> list[str]:
    return [sys.executable, str(PROGRAM), *map(str, more)]


def arms(here: Path, *names: str) -> list[str]:
    return [word for name in names for word in ("--arm", f"{name}: sh {here}/job.sh {name} {{}}")]


def environment(here: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{here}:{os.environ['PATH']}"}


def start(here: Path, *more: object) -> Answer:
    done = subprocess.run(
        words(here, *more), capture_output=True, text=True, env=environment(here), cwd=here
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def runs(here: Path, status: str = plans.OK) -> list[Run]:
    return [run for run in plans.runs_read(here / "exp") if run.status == status]


def made(here: Path) -> list[str]:
    """The arms that were launched, in order."""
    return [line.split()[0] for line in (here / "log").read_text().splitlines()]


def test_two_arms_run_in_turns_after_one_discarded_run_of_each(here, report):
    answer = start(here, "run", "exp", "--blocks", 4, "--seed", 1, *arms(here, "a", "b"))
    assert answer.status == 0, answer.err
    first, second = made(here)[2:4]
    assert made(here)[2:] == [first, second, second, first] * 2
    assert sorted(made(here)[:2]) == ["a", "b"]
    assert "done: 4 blocks. Read them with: hvprof-report compare exp" in answer.out
    assert Counter(run.arm for run in runs(here)) == {"a": 4, "b": 4}
    assert len(runs(here, plans.WARM_UP)) == 2
    verdict = report("compare", here / "exp", "--by", "verdict", "--json").rows[0]
    assert of(verdict, "pairs failed_runs verdict") == (4, 0, "too few")


@pytest.mark.slow
def test_the_hosts_are_measured_before_each_run(here, report):
    start(here, "run", "exp", "--blocks", 2, "--seed", 1, *arms(here, "a", "b"))
    rows = report("compare", here / "exp", "--by", "run", "--json").rows
    assert [(row["arithmetic_ns"], row["memory_ns"]) for row in rows] == [(1000, 2000)] * 4
    assert (here / "exp/block-02/a.canary/node00").exists()


@pytest.mark.slow
def test_resume_runs_more_blocks(here):
    start(here, "run", "exp", "--blocks", 1, *arms(here, "a", "b"))
    answer = start(here, "resume", "exp", "--blocks", 3)
    assert answer.status == 0, answer.err
    assert "done: 3 blocks." in answer.out
    assert Counter(run.arm for run in runs(here)) == {"a": 3, "b": 3}


@pytest.mark.slow
def test_aa_runs_the_first_arm_once_more_in_each_block(here, report):
    answer = start(here, "run", "exp", "--blocks", 6, "--aa", *arms(here, "a", "b"))
    assert answer.status == 0, answer.err
    assert Counter(run.arm for run in runs(here)) == {"a": 6, "b": 6, "a-again": 6}
    assert Counter(made(here)) == {"a": 14, "b": 7}
    verdicts = report("compare", here / "exp", "--by", "verdict", "--json").rows
    found = [of(row, "side verdict is_control") for row in verdicts]
    assert found == [("b", "same", 0), ("a-again", "same", 1)]
    said = "A/A a-again runs the command of a: same within 2.0 %"
    assert said in report("compare", here / "exp").prose


@pytest.mark.slow
def test_bare_runs_each_arm_without_the_profiler_too(here, report):
    (here / "nothing-a").touch()
    profiled = [word.replace("{}", "{} --output x") for word in arms(here, "a", "b")]
    refused = start(here, "run", "exp", "--bare", *profiled)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "--bare: an arm has options of commprof-run" in refused.err
    bare_job = f"if [ $# = 4 ]; then echo $1 bare >>{here}/log; exit 0; fi\n"
    (here / "job.sh").write_text(bare_job + JOB)
    (here / "nothing-a").unlink()
    answer = start(here, "run", "exp", "--blocks", 2, "--bare", *arms(here, "a", "b"))
    assert answer.status == 0, answer.err
    assert Counter(run.arm for run in runs(here)) == {"a": 2, "b": 2, "a-bare": 2, "b-bare": 2}
    logged = Counter((here / "log").read_text().splitlines())
    assert (logged["a bare"], logged["b bare"]) == (3, 3)
    figures = report("compare", here / "exp", "--by", "figure", "--json").rows
    seconds: dict[str, list[float]] = {}
    for run in runs(here):
        seconds.setdefault(run.arm, []).append(run.seconds)
    found = {of(row, "side reference figure"): row for row in figures}
    for side, reference, figure, first, second in (
        ("b", "a", "elapsed", "a", "b"),
        ("b", "a", "bare", "a-bare", "b-bare"),
        ("b", "b without profiler", "elapsed", "b-bare", "b"),
    ):
        expected = [1e9 * median(seconds[name]) for name in (first, second)]
        assert of(found[side, reference, figure], "first_ns second_ns") == pytest.approx(expected)
    text = report("compare", here / "exp").prose
    assert "Profiler launch to end with it v. without: a " in text
    assert "... without profiler" in text
    (verdict,) = report("compare", here / "exp", "--by", "verdict", "--json").rows
    assert verdict["side"] == "b"


@pytest.mark.slow
def test_a_failed_run_is_kept_and_its_block_repeated(here, report):
    (here / "fail-b").write_text("x\n")
    (here / "fail-a").write_text("")
    answer = start(here, "run", "exp", "--blocks", 2, "--seed", 1, *arms(here, "a", "b"))
    assert answer.status == 0, answer.err
    assert "b, discarded: failed, exit status 7; see exp/block-00/b.log" in answer.out
    assert (here / "exp/block-00/b.log").read_text() == "failing\n"  # the next run has the same
    assert len(runs(here, plans.FAILED)) == 1
    (here / "fail-b").write_text("x\n")
    assert start(here, "resume", "exp", "--blocks", 4).status == 0
    failed = runs(here, plans.FAILED)[-1]
    complete = plans.complete_blocks(plans.plan_read(here / "exp"), plans.runs_read(here / "exp"))
    assert len(complete) == 4 and failed.block not in complete
    assert report("compare", here / "exp", "--by", "verdict", "--json").rows[0]["failed_runs"] == 2
    status = start(here, "status", "exp").out
    assert "b: 4 runs" in status and "2 failed runs" in status


def test_an_arm_that_always_fails_ends_the_experiment(here):
    (here / "fail-b").write_text("x\n" * 9)
    answer = start(here, "run", "exp", *arms(here, "a", "b"))
    assert (answer.status, answer.err.count("\n")) == (1, 1)
    for said in (
        "b: failed 3 times in a row; the last output is in exp/block-00/b.log: failing; ",
        "go on with: commprof-experiment resume exp (other commands: in another folder)",
    ):
        assert said in answer.err


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_ended_and_has_failed(here):
    os.mkfifo(here / "wait-a")
    answer = start(here, "run", "exp", "--timeout", 1, *arms(here, "a", "b"))
    assert "failed, it took more than 1 s" in answer.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, before_it", zip(("KILL", "KILL", "TERM", "INT"), ("", "true; ", "HERE=1 ", ""))
)
def test_ended_at_any_run_resume_goes_on_and_no_run_counts_twice(here, number, before_it):
    """The runner is ended while the second run of a block waits; its job ends with it."""
    number = signal.Signals[f"SIG{number}"]
    named = [word.replace("sh ", f"{before_it}sh ", 1) for word in arms(here, "a", "b")]
    start(here, "run", "exp", "--blocks", 2, "--seed", 1, *named)
    last = plans.order_of(plans.plan_read(here / "exp"), 2)[-1].name
    os.mkfifo(here / f"wait-{last}")

    def heeding() -> None:  # what a shell starts with & ignores SIGINT
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    resume, how = words(here, "resume", "exp", "--blocks", 3), {"cwd": here, "text": True}
    how |= {"env": environment(here), "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    runner = subprocess.Popen(resume, preexec_fn=heeding, **how)
    with open(here / f"wait-{last}", "wb", buffering=0) as job:  # opens when the job reads
        before = runs(here)
        assert len(before) == 5
        runner.send_signal(number)
        _, said = runner.communicate()
        assert runner.returncode in (-number, 128 + number)
        is_said = "interrupted; go on with: commprof-experiment resume exp" in said
        assert is_said == (number == signal.SIGINT)
        with pytest.raises(BrokenPipeError):  # once the job has ended
            while True:
                job.write(b"x")
    (here / f"wait-{last}").unlink()
    answer = start(here, "resume", "exp")
    assert answer.status == 0, answer.err
    plan, after = plans.plan_read(here / "exp"), plans.runs_read(here / "exp")
    complete = plans.complete_blocks(plan, after)
    assert len(complete) == 3
    assert before[-1].block not in complete
    assert len({(run.block, run.arm) for run in after}) == len(after)


@pytest.mark.slow
def test_two_runners_do_not_share_an_experiment(here):
    start(here, "run", "exp", "--blocks", 1, *arms(here, "a", "b"))
    with plans.owned(here / "exp"):
        answer = start(here, "resume", "exp", "--blocks", 2)
    said = "commprof-experiment: exp: another commprof-experiment is running it\n"
    assert (answer.status, answer.err) == (1, said)


def test_a_torn_line_is_skipped_and_the_next_one_is_whole(tmp_path):
    (tmp_path / plans.RUNS).write_text('{"block": 1, "arm": "a", "fol')
    plans.run_add(tmp_path, Run(2, "b", "block-02/b", plans.OK, 1.0, ""))
    plans.run_add(tmp_path, Run(2, "a", "block-02/a", plans.OK, 1.0, ""))
    assert [(run.block, run.arm) for run in plans.runs_read(tmp_path)] == [(2, "b"), (2, "a")]


def test_an_interrupted_block_gives_its_number_to_nobody(tmp_path):
    (tmp_path / "block-07").mkdir()
    assert plans.next_block(tmp_path, [Run(3, "a", "", plans.OK, 1.0, "")]) == 8


@pytest.mark.parametrize("size", range(2, 9))
def test_in_a_williams_square_each_arm_follows_each_other_equally_often(size):
    rows = plans.williams(size)
    follows = Counter(pair for row in rows for pair in zip(row, row[1:]))
    assert len(follows) == size * (size - 1) and len(set(follows.values())) == 1
    for place in range(size):
        assert set(Counter(row[place] for row in rows).values()) == {len(rows) // size}


def test_a_plan_is_read_as_it_was_written(tmp_path):
    plan = Plan([Arm("a", "mpirun {}"), Arm("b", "srun {} 'x'")], 12, 7)
    plans.plan_write(tmp_path, plan)
    assert plans.plan_read(tmp_path) == plan
    (tmp_path / plans.EXPERIMENT).write_text(json.dumps({"format": plans.FORMAT, "version": 2}))
    with pytest.raises(ReportError):
        plans.plan_read(tmp_path)


DAMAGED = (
    {"arms": []},
    {"arms": [{"name": "../a", "command": "x {}"}]},
    {"arms": [{"name": "a", "command": "x {}"}] * 2},
    {"blocks": 0},
)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("command", ["resume", "status"])
def test_a_damaged_plan_is_said_in_one_line(here, command, damage):
    start(here, "run", "exp", "--blocks", 1, *arms(here, "a", "b"))
    plan = json.loads((here / "exp/experiment.json").read_text())
    (here / "exp/experiment.json").write_text(json.dumps({**plan, **damage}))
    answer = start(here, command, "exp")
    assert (answer.status, answer.err.count("\n")) == (1, 1), answer.err
    assert answer.err.startswith("commprof-experiment: exp/experiment.json: is damaged: ")


KIT = """\
library Open MPI 4.1.4
ranks 3
window 1000
comm 0 0 0 world 0,1,2
comm 1 1 0 self -
"""
# COMMPROF-RUN --canary FOLDER COMMPROF-RUN --output FOLDER PROGRAM ..., of three ranks
LAUNCHER = """#!/bin/sh
here=$(dirname "$0")
if [ "$1" = echo ]; then "$@" && "$@" && "$@"; exit; fi
mkdir -p "$6" && cp "$here/rank-0.db" "$6"
shift 6
program=${1##*/}; shift
echo "$program $*" >>"$here/replayed"
"""


@pytest.fixture
def kit(here) -> Path:
    """It has three ranks, as many as the launcher starts."""
    (here / "my.kit").write_bytes(signed(KIT))
    (here / "launch").write_text(LAUNCHER)
    (here / "commprof-replay").write_text("#!/bin/sh\n")
    for name in ("launch", "commprof-replay"):
        (here / name).chmod(0o755)
    return here / "my.kit"


def test_arms_without_a_program_replay_the_kit(here, kit, report):
    (here / "my.kit.check").write_text("{}")
    commands = "a: ./launch {}", "b: ./launch {} --gaps none", "job: ./launch {} ./app"
    words = [word for command in commands for word in ("--arm", command)]
    answer = start(here, "run", "exp", "--kit", kit, "--blocks", 1, *words)
    assert answer.status == 0, answer.err
    copied = here / "exp/job.kit"
    replay = f"commprof-replay {copied}"
    lines = Counter(line.rstrip() for line in (here / "replayed").read_text().splitlines())
    assert lines == {replay: 2, f"{replay} --gaps none": 2, "app": 2}
    digest = hashlib.sha256(KIT.encode()).hexdigest()
    assert plans.plan_read(here / "exp").kit == digest
    assert f"; kit {digest}" in start(here, "status", "exp").out
    assert (here / "exp/job.kit.check").read_text() == "{}"
    copied.write_bytes(gzip.compress(b"commprof-kit 1\n"))
    refused = start(here, "resume", "exp", "--blocks", 3)
    assert (refused.status, refused.err.count("\n")) == (1, 1) and str(copied) in refused.err


@pytest.mark.parametrize(
    "command", ["mpirun {}", "{} --gaps none", "sh -c 'exec taskset 1 {}'", "{} >log", "{} && true"]
)
def test_an_arm_is_without_a_program_whatever_a_shell_reads_behind_it(command):
    assert is_replay(command) and not is_replay(command.replace("{}", "{} ./app"))


# JSON that others have written or changed.

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
