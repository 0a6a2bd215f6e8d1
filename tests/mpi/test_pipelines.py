"""Pipelines of real ranks with a stage that is slow on purpose (programs/pipelines.c), under
`hvprof-report pipeline`."""

from __future__ import annotations

import pytest

from . import reporter
from .harness import Run

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

ACTIVATION_BYTES, STEPS, MICRO_BATCHES = 4 * 4096, 8, 3
# stages, the slow one, how
SHAPES = [(2, 0, "blocking"), (2, 1, "nonblocking"), (3, 1, "blocking"), (3, 2, "nonblocking")]


def rows(command: str, run: Run) -> list[dict]:
    return reporter.rows(command, run.folder)


@pytest.mark.parametrize(("stages", "slow", "how"), SHAPES)
def test_two_replicas_are_found_stage_by_stage(profile, stages, slow, how):
    found = rows("pipeline", profile("pipelines", 2 * stages, str(stages), "2", str(slow), how))
    assert [(row["pipeline"], row["stage"], row["rank"]) for row in found] == [
        (1 + rank // stages, rank % stages, rank) for rank in range(2 * stages)
    ]
    assert {row["replicas"] for row in found} == {2}
    assert {row["stage"]: row["replica_communicator"] for row in found} == {
        stage: f"Comm_split {{{stage},{stage + stages}}}" for stage in range(stages)
    }


@pytest.mark.nightly
@pytest.mark.parametrize(("stages", "slow", "how"), SHAPES)
def test_the_others_wait_for_the_slow_stage(profile, stages, slow, how):
    found = rows("pipeline", profile("pipelines", 2 * stages, str(stages), "2", str(slow), how))
    assert [row["stage"] for row in found if row["is_waited_for"]] == [slow, slow]


def test_every_stage_passes_what_the_program_passed(profile):
    found = rows("pipeline", profile("pipelines", 6, "3", "2", "1", "blocking"))
    passed = STEPS * MICRO_BATCHES * ACTIVATION_BYTES
    assert [(row["forward_bytes"], row["backward_bytes"]) for row in found] == [
        (passed, 0),
        (passed, passed),
        (0, passed),
    ] * 2


def test_communicators_are_told_apart(profile):
    found = rows("communicators", profile("pipelines", 6, "3", "2", "1", "blocking"))
    assert {
        (row["members"], row["role"]) for row in found if row["constructor"] == "MPI_Comm_split"
    } == {
        ("0-2", "pipeline neighbours"),
        ("3-5", "pipeline neighbours"),
        *((f"{stage},{stage + 3}", "replica group") for stage in range(3)),
    }
