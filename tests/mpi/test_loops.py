"""Steps of small programs of all kinds are as many as their authors count (programs/loops.c)."""

from __future__ import annotations

import pytest

from . import reporter

pytestmark = pytest.mark.nightly

STEPS = {
    "solver": 60, "dynamics": 100, "experts": 24, "checkpoints": 200, "evaluation": 100,
    "gpipe": 80, "1f1b": 80, "stencil": 150, "exchange": 120, "multigrid": 50,
}


@pytest.mark.parametrize("kind", STEPS)
def test_steps_are_those_that_the_program_counts(profile, kind):
    (row,) = reporter.rows("steps", profile("loops", 4, kind, str(STEPS[kind])).folder)
    assert row["steps"] == pytest.approx(STEPS[kind], rel=0.05), row["loops"]
    assert row["certainty"] in ("sure", "likely") and row["loops"]


def test_ensembles_that_never_talk_to_each_other_have_steps_each(profile):
    (row,) = reporter.rows("steps", profile("loops", 4, "ensembles", "80").folder)
    assert (row["steps"], row["communicator"]) == (80, "Comm_split {0-1}")
    assert row["apart"].startswith("ranks 2-3: 20 steps of 1 bulk MPI_Allreduce, median ")
