"""Comparisons of training runs whose gradients are cut into messages anew: fusion on and off, other
buckets, and the same setting twice."""

from __future__ import annotations

import random
from pathlib import Path

import planted
import pytest
import training
from commprof_report.compare import comparison
from commprof_report.compare.comparison import Comparison, compare
from commprof_report.compare.figures import Figures, figures
from commprof_report.compare.judge import Rules
from commprof_report.compare.sides import Side
from planted import SECOND, Signature

MS = 1_000_000
STEPS = 60
BACKGROUND = 5
GRADIENTS = [400_000, 200_000, 100_000, 60_000, 40_000, 2_000, 64]
WHOLE = sum(GRADIENTS)
HALVES = [[WHOLE // 2, WHOLE // 2], [WHOLE - 100_000, 100_000], [WHOLE]]
BITS = Signature(1, "MPI_LONG_LONG", 8, 8, 1, 1, "MPI_BAND")
SUMS = Signature(2, "MPI_FLOAT", 4, 4, 1, 16, "MPI_SUM")


def training_run(
    path: Path,
    cuts: list[list[int]],
    steps: int = STEPS,
    rounds: int = 3,
    ns_of_each: int = 200_000,
    once: int = 0,
    each_step: str = "",
) -> Path:
    """Two ranks. A step's gradients are cut in one of these ways, after `rounds` rounds of
    negotiation for each message. once: bytes of a Bcast at the start; each_step: a further call."""
    job = training.Job(len(cuts) + steps)
    if once:
        job.call("Bcast", once)
    for step in range(steps):
        job.compute(20 * MS)
        for size in job.random.choice(cuts):
            for _ in range(rounds):
                job.call("Allreduce", 8, ns=10_000)
            job.call("Allreduce", size, step, ns=ns_of_each)
        if each_step:
            job.call(each_step, 50_000)
    ranks = [training.rank_of(job, rank, thread=BACKGROUND) for rank in range(2)]
    for rank in ranks:
        rank.signatures, rank.steps = [BITS, SUMS], training.marks(job)
        for sample in rank.samples:
            sample.signature = 1 if sample.bytes == 8 and rounds else 2
        for reading, at_ns in (("begin", 0), ("last", SECOND)):
            rank.facts[f"{reading}.affinity"] = str(rank.world_rank)
            rank.facts[f"{reading}.since_start_ns"] = str(at_ns)
    return planted.write_databases(path, ranks)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cuts")


@pytest.fixture(scope="module")
def run_of(folder):
    """Reads each kind of run once."""
    known: dict[str, Figures] = {}

    def made(name: str, *arguments: object, **more: object) -> Figures:
        if name not in known:
            known[name], _ = figures(training_run(folder / name, *arguments, **more))
        return known[name]

    return made


@pytest.fixture(scope="module")
def unfused(run_of) -> Figures:
    return run_of("unfused", [GRADIENTS])


@pytest.fixture(scope="module")
def fused(run_of) -> Figures:
    return run_of("fused", HALVES, ns_of_each=300_000)


def compared(first: list[Figures], second: list[Figures], **rules: object) -> Comparison:
    """In turns, a minute apart."""
    sides = []
    for place, (name, runs) in enumerate((("A", first), ("B", second))):
        starts = [60 * SECOND * (2 * block + (place + block) % 2) for block in range(len(runs))]
        runs = [run._replace(start_unix_ns=start) for run, start in zip(runs, starts)]
        sides.append(Side(name, runs, None, 0))
    return compare(sides, Rules(**rules))


def texts(answers: Comparison) -> dict[str, str]:
    """The first line of each head."""
    found: dict[str, str] = {}
    for head, text in comparison.facts(answers):
        found.setdefault(head, text)
    return found


def with_steps(run: Figures, factor: float, noise: float, seed: int) -> list[Figures]:
    chance = random.Random(seed)
    return [
        run._replace(step_ns=run.step_ns * factor * chance.lognormvariate(0, noise))
        for _ in range(8)
    ]


@pytest.mark.parametrize("is_swapped", [False, True])
def test_fusion_on_and_off_are_the_same_work(unfused, fused, is_swapped):
    runs = [fused, unfused] if is_swapped else [unfused, fused]
    answers = compared([runs[0]], [runs[1]])
    assert answers.refused == []
    assert answers.metric == "step"
    sent = {"A": "7.00", "B": "1.57"} if not is_swapped else {"A": "1.57", "B": "7.00"}
    expected = f"MPI_Allreduce sends {sent['A']} messages a step in A, {sent['B']} in B, on 2 ranks"
    assert texts(answers)["Same work"] == f"yes: 60 steps in every run; {expected}"


def test_a_setting_against_itself_is_the_same_though_its_cuts_differ(fused, run_of):
    other = run_of("fused again", HALVES[::-1] + [[WHOLE - 60_000, 60_000]], ns_of_each=300_000)
    other = other._replace(step_ns=fused.step_ns)
    answers = compared(with_steps(fused, 1.0, 0.005, 3), with_steps(other, 1.0, 0.005, 4))
    assert answers.refused == []
    assert answers.pairs[0].verdict.verdict == "same"


@pytest.mark.parametrize(
    "name, more, said",
    [
        ("longer", {"cuts": HALVES, "steps": 2 * STEPS}, "60 steps in A, 120 in B; "),
        (
            "gathering",
            {"cuts": HALVES, "each_step": "Allgather"},
            "MPI_Allgather 50.0 KB on MPI_COMM_WORLD: 0 -> ",
        ),
        (
            "broadcasting",
            {"cuts": HALVES, "once": 3_000_000},
            "MPI_Bcast 3.00 MB on MPI_COMM_WORLD: 0 -> ",
        ),
    ],
)
def test_other_work_is_refused(unfused, run_of, name, more, said):
    refused, *_ = compared([unfused], [run_of(name, **more)]).refused  # or another program, too
    assert refused.kind == "work"
    assert refused.what.startswith(said)


def test_runs_without_steps_are_refused_with_the_way_to_have_some(unfused, fused):
    (refused,) = compared([unfused], [fused._replace(steps=None)]).refused
    assert refused.kind == "work"
    assert "marked where a framework negotiates (man commprof_step)" in refused.way_out


def test_more_small_calls_without_negotiation_are_other_work(run_of):
    first = run_of("buckets 2", [HALVES[0]], rounds=0)
    second = run_of("small calls", [[*GRADIENTS[:-1], 64, 16]], rounds=0)
    (refused,) = compared([first], [second]).refused
    assert refused.what.startswith("MPI_Allreduce 16 B on MPI_COMM_WORLD: 0 -> ")
