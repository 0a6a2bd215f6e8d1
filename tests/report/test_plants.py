"""The planted faults of tests/truth and their balanced twins, as recorded with the ranks' own logs
(truth/recordings.py): who is late, in which call, from which cause, and what it costs, is what the
logs say; nobody is accused in the twins, and all commands agree. `make nightly` plays them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mpi import reporter
from read_once import read_once
from truth import recordings, statements
from truth.plants import Plant
from truth.ranks import expanded
from truth.recordings import RECORDED, RECORDED_TWINS
from truth.trial import CONFIRMED, Trial, is_accused, is_confirmed, judge, told, waits_as_logged

ONE_CLOCK = [
    plant
    for plant in RECORDED
    if plant.where != "hosts" and plant.cause != "none" and not plant.is_negotiated
]
COMPARED = list({plant.cause: plant for plant in RECORDED}.values())
TRAINING = {"ddp", "horovod", "horovod_marks"}
# each round is a step
STEPPING = {"blocking", "nonblocking", "late_root", "gpipe", "staircase", "drift"} | TRAINING
Recorded = Callable[..., Trial]


def by_name(plants: Iterable[Plant]) -> list:
    """For parametrize."""
    return [pytest.param(plant, id=plant.name) for plant in plants]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """recorded(plant): its trial; recorded(plant, is_twin=True): that of its twin."""
    folder = tmp_path_factory.mktemp("plants")
    recordings.unpack(folder)
    with read_once():
        yield lambda plant, is_twin=False: recordings.recorded(folder, plant, is_twin)


@pytest.mark.parametrize("plant", by_name(RECORDED))
def test_the_fault_is_named_with_its_call_its_cause_and_its_cost(recorded: Recorded, plant: Plant):
    judgement = judge(recorded(plant))
    assert judgement.holds and judgement.complaints == []


@pytest.mark.parametrize("plant", by_name(ONE_CLOCK))
def test_each_rank_waited_as_long_as_it_logged(recorded: Recorded, plant: Plant) -> None:
    assert waits_as_logged(recorded(plant))


@pytest.mark.parametrize("plant", by_name(plant for plant in RECORDED if plant.logs_gain))
def test_the_gain_is_that_of_the_logs_played_again(recorded: Recorded, plant: Plant) -> None:
    trial = recorded(plant)
    assert told(trial.run).gain_ns == pytest.approx(trial.truth.gain_ns, rel=0.15)


@pytest.mark.parametrize("plant", by_name(RECORDED_TWINS))
def test_a_balanced_twin_accuses_nobody(recorded: Recorded, plant: Plant) -> None:
    """Unless the logs say so, too: other work on the machine made the rank late."""
    twin = recorded(plant, is_twin=True)
    assert not is_accused(twin) or is_confirmed(twin)
    for command, ranks in statements.accused(twin.run.folder).items():
        assert twin.truth.is_for(sorted(ranks)) >= CONFIRMED, command


@pytest.mark.parametrize(
    "plant", by_name(plant for plant in RECORDED if plant.named and plant.program in STEPPING)
)
def test_steps_name_whom_late_names(recorded: Recorded, plant: Plant) -> None:
    """Without evidence for steps, the outermost loop is chosen: it is the round."""
    folder = recorded(plant).run.folder
    (steps,) = reporter.rows_of_ended("steps", folder)
    if not steps["delimited_by"]:
        (steps,) = reporter.rows_of_ended("steps", folder, "--loop", "1")
        assert steps["steps"] == plant.rounds
    assert set(expanded(steps["slowest_ranks"])) == statements.accused(folder)["late"]


@pytest.mark.parametrize("is_twin", [False, True], ids=["slow", "twin"])
@pytest.mark.parametrize("plant", by_name(plant for plant in RECORDED if plant.program in TRAINING))
def test_every_step_of_training_is_found(recorded: Recorded, plant: Plant, is_twin: bool) -> None:
    """DistributedDataParallel's plant hands no parameters out, so nothing says which is a step."""
    folder = recorded(plant, is_twin).run.folder
    (steps,) = reporter.rows_of_ended("steps", folder)
    if not steps["delimited_by"]:
        (steps,) = reporter.rows_of_ended("steps", folder, "--loop", "1")
    by_name = steps["delimited_by"] == "negotiation"  # the first step
    assert steps["steps"] == plant.rounds - by_name


def test_ranks_whose_cores_others_share_are_said_to_be_crowded(recorded: Recorded) -> None:
    (plant,) = (plant for plant in RECORDED if plant.where == "cores")
    folder = recorded(plant).run.folder
    (row,) = reporter.rows_of_ended("summary", folder)
    assert row["crowded_ranks"] == "0-1"
    assert row["crowding"] in " ".join(reporter.text("summary", folder).split())


def test_a_rank_that_serves_the_others_is_not_late(recorded: Recorded) -> None:
    (plant,) = (plant for plant in RECORDED if plant.name == "rank that gathers by a slow network")
    assert reporter.text("late", recorded(plant).run.folder).startswith(
        "No rank is late: rank 0 causes 98.8 % of the waiting by serving the others with messages."
    )


@pytest.mark.slow
@pytest.mark.parametrize("plant", by_name(COMPARED))
def test_one_question_has_one_answer(recorded: Recorded, plant: Plant, tmp_path) -> None:
    """Compares all commands, the page, the timeline and Prometheus."""
    said = statements.statements(recorded(plant).run.folder, tmp_path / "page.html")
    assert {
        quantity: answers
        for quantity, answers in said.items()
        if not statements.agree(quantity, answers.values())
    } == {}


@pytest.mark.parametrize("plant", by_name(plant for plant in RECORDED if plant.cause != "none"))
def test_no_two_commands_accuse_different_ranks(recorded: Recorded, plant: Plant) -> None:
    """A rank that a command names is named by late or the plant, or for pipeline by the logs of
    the rank's own pipeline."""
    trial = recorded(plant)
    accused = statements.accused(trial.run.folder)
    named = accused.pop("late", {*plant.named, *plant.calls.values()})
    beside = {
        rank
        for stages in pipelines(trial)
        for rank in stages
        if trial.truth.is_for([rank], stages) >= CONFIRMED
    }
    assert {
        command: left
        for command, ranks in accused.items()
        if (left := ranks - named - (beside if command == "pipeline" else set()))
    } == {}


def pipelines(trial: Trial) -> list[list[int]]:
    """The ranks of each."""
    found: dict[int, list[int]] = {}
    for row in reporter.rows_of_ended("pipeline", trial.run.folder):
        found.setdefault(row["pipeline"], []).append(row["rank"])
    return list(found.values())
