"""Each planted fault of tests/truth once under each MPI, on 2 to 8 ranks: who is late, in which
call, from which cause, and what it costs, by the ranks' own logs. Balanced twins accuse nobody, and
all commands agree. `make check-truth` plays all of them many times."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from math import comb

import pytest

from . import reporter
from .harness import TRIES
from .libraries import REPOSITORY, Mpi, libraries

sys.path.insert(0, str(REPOSITORY / "tests"))
from truth import statements
from truth.plants import PLANTS, Plant
from truth.trial import (
    CONFIRMED, Trial, is_accused, is_confirmed, judge, play, told, tolerance_ns, why_not,
)

pytestmark = pytest.mark.slow

LEVEL = 0.01  # of the verdict: the probability that a balanced run accuses somebody
UNLIKELY = 0.001
SAME_TWINS = {"staircase", "random", "rotation", "drift"}  # without delay these are "blocking"
TWINS = [
    plant for plant in PLANTS
    if plant.program not in SAME_TWINS and plant.where not in ("network", "link")
]
ESTIMATED = [plant for plant in PLANTS if plant.samples or plant.is_negotiated]
ONE_CLOCK = [
    plant for plant in PLANTS
    if plant.where != "hosts" and plant.cause != "none" and plant not in ESTIMATED
]
COMPARED = list({(plant.program, plant.where): plant for plant in PLANTS}.values())
TRAINING = {"ddp", "horovod", "horovod_marks", "horovod_regions"}
IN_POLLS = {"held_up", "pass_held_up", "pass_probed"}
# each round is a step
STEPPING = {"blocking", "nonblocking", "late_root", "gpipe", "staircase", "drift"} | TRAINING
Played = Callable[..., Trial]


def by_name(plants: Iterable[Plant]) -> list:
    """For parametrize."""
    return [pytest.param(plant, id=plant.name) for plant in plants]


def is_named(trial: Trial) -> bool:
    """By `late`, and by `steps` where each round is a step: either is silent where other work
    leaves too few rounds that agree."""
    is_step = trial.plant.program in STEPPING
    named_by_steps = statements.accused(trial.run.folder).get("steps") if is_step else None
    return bool(told(trial.run).named) and (not is_step or bool(named_by_steps))


@pytest.fixture(scope="module")
def played(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """played(plant): its trial; played(plant, is_twin=True): that of its twin. Skips a plant that
    cannot be played here, or that other work on the machine hides in the logs."""
    trials: dict[tuple[str, bool], Trial | None] = {}

    def play_undisturbed(plant: Plant) -> Trial | None:
        """Plays a plant, and again if nobody is named: a busy machine may make other ranks late as
        well. Naming another rank is never excused."""
        held = None
        for _ in range(TRIES):
            trial = play(mpi, plant, False, tmp_path_factory.mktemp(f"{mpi.name}-{plant.program}"))
            held = trial if judge(trial).holds else held
            if held is trial and (is_named(trial) or not plant.named):
                break
        return held

    def get(plant: Plant, is_twin: bool = False) -> Trial:
        if reason := why_not(mpi, plant):
            pytest.skip(reason)
        key = plant.name, is_twin
        if key not in trials:

            def twin() -> Trial:
                folder = tmp_path_factory.mktemp(f"{mpi.name}-{plant.program}-twin")
                return play(mpi, plant, True, folder)

            trials[key] = twin() if is_twin else play_undisturbed(plant)
        return trials[key] or pytest.skip("other work on this machine hides the fault")

    return get


@pytest.mark.parametrize("plant", by_name(PLANTS))
def test_the_fault_is_named_with_its_call_its_cause_and_its_cost(
    mpi: Mpi, played: Played, plant: Plant, tmp_path_factory
) -> None:
    """Other work on the machine may break an order of ranks, or add to the cost: then again."""
    trial = played(plant)
    if plant.where == "cores" and not told(trial.run).named:
        pytest.skip("other work on this machine made the other rank late, too")
    complaints = judge(trial).complaints
    for _ in range(TRIES - 1):
        if complaints:
            complaints = judge(
                play(mpi, plant, False, tmp_path_factory.mktemp(f"{mpi.name}-{plant.program}"))
            ).complaints
    assert complaints == []


def waits_as_logged(trial: Trial) -> bool:
    told_ns, slack_ns = told(trial.run).wait_ns, tolerance_ns(trial)
    logged_ns = trial.truth.wait_ns
    return all(
        told_ns.get(rank, 0)
        == pytest.approx(logged_ns[rank], rel=0.1, abs=slack_ns + trial.truth.unsure_ns[rank])
        for rank in range(trial.plant.ranks)
    )


@pytest.mark.parametrize("plant", by_name(ONE_CLOCK))
def test_each_rank_waited_as_long_as_it_logged(
    mpi: Mpi, played: Played, plant: Plant, tmp_path_factory
) -> None:
    """Other work on the machine may come between a log's reading of the clock and
    ours: then again."""
    folder = lambda: tmp_path_factory.mktemp(f"{mpi.name}-{plant.program}")  # noqa: E731
    assert waits_as_logged(played(plant)) or any(
        waits_as_logged(play(mpi, plant, False, folder())) for _ in range(TRIES - 1)
    )


@pytest.mark.parametrize("plant", by_name(plant for plant in PLANTS if plant.samples))
def test_where_a_part_of_the_calls_is_sampled_causes_are_known(
    played: Played, plant: Plant
) -> None:
    (whole,) = reporter.rows_of_ended("late", played(plant).run.folder, "--by", "run")
    assert whole["sampled_share"] < 0.5 < whole["coverage"]
    assert whole["unknown_cause_ns"] < 0.5 * whole["wait_ns"]


@pytest.mark.parametrize("plant", by_name(plant for plant in PLANTS if plant.logs_gain))
def test_the_gain_is_that_of_the_logs_played_again(
    mpi: Mpi, played: Played, plant: Plant, tmp_path_factory
) -> None:
    """Busy cores may make a sample, or the clocks of hosts, coarse: then again."""
    if mpi.family != "openmpi" and plant.program in IN_POLLS:
        pytest.skip("ranks that poll take each other's cores, and it is not known for how long")

    def is_close(trial: Trial) -> bool:
        return told(trial.run).gain_ns == pytest.approx(trial.truth.gain_ns, rel=0.15)

    folder = lambda: tmp_path_factory.mktemp(f"{mpi.name}-{plant.program}")  # noqa: E731
    assert is_close(played(plant)) or any(
        is_close(play(mpi, plant, False, folder())) for _ in range(TRIES - 1)
    )


def most_accusations(runs: int) -> int:
    """More than these of balanced runs are unlikely at the verdict's level."""
    chances = [comb(runs, k) * LEVEL**k * (1 - LEVEL) ** (runs - k) for k in range(runs + 1)]
    return next(k for k in range(runs + 1) if sum(chances[k + 1 :]) < UNLIKELY)


def test_balanced_twins_accuse_nobody(played: Played, mpi: Mpi) -> None:
    """Other work on the machine may make a rank late: then the logs say so, too."""
    twins = [played(plant, is_twin=True) for plant in TWINS if not why_not(mpi, plant)]
    accusing = [
        (twin.plant.name, told(twin.run)) for twin in twins
        if is_accused(twin) and not is_confirmed(twin)
    ]
    assert len(accusing) <= most_accusations(len(twins)), accusing


@pytest.mark.parametrize("plant", by_name(plant for plant in PLANTS if plant.program == "drift"))
def test_a_rank_that_gets_slower_is_said_to(played: Played, plant: Plant) -> None:
    run = played(plant).run
    (late,), (steps,) = (
        reporter.rows_of_ended("late", run.folder, "--by", "run"),
        reporter.rows_of_ended("steps", run.folder),
    )
    assert (late["late_is_growing"], steps["slowest_is_growing"]) == (1, 1)


def test_steps_of_balanced_twins_accuse_nobody(played: Played, mpi: Mpi) -> None:
    twins = [played(plant, is_twin=True) for plant in TWINS if not why_not(mpi, plant)]
    named = [(twin, statements.accused(twin.run.folder).get("steps", set())) for twin in twins]
    accusing = [
        (twin.plant.name, ranks) for twin, ranks in named
        if ranks and twin.truth.is_for(sorted(ranks)) < CONFIRMED
    ]
    assert len(accusing) <= most_accusations(len(twins)), accusing


@pytest.mark.parametrize(
    "plant", by_name(plant for plant in PLANTS if plant.named and plant.program in STEPPING)
)
def test_steps_name_whom_late_names(played: Played, plant: Plant) -> None:
    accused = statements.accused(played(plant).run.folder)
    assert accused.get("steps") == accused.get("late")


@pytest.mark.parametrize("is_twin", [False, True], ids=["slow", "twin"])
@pytest.mark.parametrize("plant", by_name(plant for plant in PLANTS if plant.program in TRAINING))
def test_every_step_of_training_is_found(played: Played, plant: Plant, is_twin: bool) -> None:
    (steps,) = reporter.rows_of_ended("steps", played(plant, is_twin).run.folder)
    assert steps["steps"] == plant.rounds


@pytest.mark.parametrize("plant", by_name(COMPARED))
def test_one_question_has_one_answer(mpi: Mpi, played: Played, plant: Plant, tmp_path) -> None:
    """Compares all commands, the page, the timeline and Prometheus. The reports are the same under
    each library, so half of the plants is compared under each."""
    able = [library for library in libraries() if not why_not(library, plant)]
    if able and mpi != able[COMPARED.index(plant) % len(able)]:
        pytest.skip("compared under another library")
    said = statements.statements(played(plant).run.folder, tmp_path / "page.html")
    assert {
        quantity: answers for quantity, answers in said.items()
        if not statements.agree(quantity, answers.values())
    } == {}


@pytest.mark.parametrize("plant", by_name(plant for plant in PLANTS if plant.cause != "none"))
def test_no_two_commands_accuse_different_ranks(
    mpi: Mpi, played: Played, plant: Plant, tmp_path_factory
) -> None:
    """Other work on the machine may make a rank late in a pair of ranks alone, which only pipeline
    looks at: then the logs say so, too; or again."""
    contradictions = contradicted(played(plant))
    for _ in range(TRIES - 1):
        if contradictions:
            contradictions = contradicted(
                play(mpi, plant, False, tmp_path_factory.mktemp(f"{mpi.name}-{plant.program}"))
            )
    assert contradictions == {}


def contradicted(trial: Trial) -> dict[str, set[int]]:
    """The ranks that a command names, but neither late nor the plant, nor for pipeline the logs of
    the rank's own pipeline."""
    accused = statements.accused(trial.run.folder)
    named = accused.pop("late", {*trial.plant.named, *trial.plant.calls.values()})
    beside = {
        "pipeline": {
            rank for stages in pipelines(trial) for rank in stages
            if trial.truth.is_for([rank], stages) >= CONFIRMED
        }
    }
    return {
        command: left for command, ranks in accused.items()
        if (left := ranks - named - beside.get(command, set()))
    }


def pipelines(trial: Trial) -> list[list[int]]:
    """The ranks of each."""
    found: dict[int, list[int]] = {}
    for row in reporter.rows_of_ended("pipeline", trial.run.folder):
        found.setdefault(row["pipeline"], []).append(row["rank"])
    return list(found.values())
