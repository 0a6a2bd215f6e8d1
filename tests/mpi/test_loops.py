"""Steps of small programs of all kinds are as many as their authors count (programs/loops.c), or
all levels of the loops are shown, and none is called the step."""

from __future__ import annotations

import pytest

from . import reporter

pytestmark = pytest.mark.nightly

STEPS = {  # those of which the calls show that they are steps
    "solver": 60, "experts": 24, "gpipe": 80, "1f1b": 80, "stencil": 150, "exchange": 120,
    "multigrid": 50,
}
LEVELS = {  # and one level that has to be among those shown
    "dynamics": (100, "10 x ("), "checkpoints": (200, "200 x ("), "evaluation": (100, "100 x ("),
    "vcycles": (40, "40 x ("), "spins": (20, "20 x ("), "neighbours": (250, " x ("),
    "nested": (30, " x ("), "blocks": (60, "360 x ("),
}


@pytest.mark.parametrize("kind", STEPS)
def test_steps_are_those_that_the_program_counts(profile, kind):
    (row,) = reporter.rows("steps", profile("loops", 4, kind, str(STEPS[kind])).folder)
    assert row["steps"] == STEPS[kind], row["loops"]
    assert row["certainty"] in ("known", "probably") and row["loops"]


@pytest.mark.parametrize("kind", LEVELS)
def test_loops_without_evidence_are_shown_without_a_claim(profile, kind):
    steps, level = LEVELS[kind]
    (row,) = reporter.rows("steps", profile("loops", 4, kind, str(steps)).folder)
    assert (row["certainty"], row["steps"]) == ("none", 0) or row["steps"] == steps, row["loops"]
    assert level in row["loops"]


def test_ensembles_that_never_talk_to_each_other_have_steps_each(profile):
    (row,) = reporter.rows("steps", profile("loops", 4, "ensembles", "80").folder, "--loop", "1")
    assert (row["steps"], row["communicator"]) == (80, "Comm_split {0-1}")
    assert row["apart"].startswith("ranks 2-3: 20 steps of 1 bulk MPI_Allreduce, median ")
