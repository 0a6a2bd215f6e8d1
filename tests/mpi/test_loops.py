"""Steps of small programs of all kinds are as many as their authors count (programs/loops.calls),
or all levels of the loops are shown, and none is called the step."""

from __future__ import annotations

import pytest

from . import reporter

pytestmark = pytest.mark.nightly

STEPS = {  # the innermost loop repeats as often as the command line asks
    "solver": 60,
    "checkpoints": 200,
    "exchange": 120,
    "gpipe": 80,
    "spins": 20,
    "vcycles": 40,
    "experts": 24,
    "stencil": 150,
    "multigrid": 50,
    "spectral": 60,
    "files": 100,
    "evaluation": 100,
    "accumulation": 60,
    "subcycles": 80,
}
LEVELS = {  # and one level that has to be among those shown
    "dynamics": (100, "200 x ("),
    "neighbours": (250, " x ("),
    "nested": (30, " x ("),
    "blocks": (60, "360 x ("),
    "layers": (40, "40 x ("),
    "workers": (30, " message calls)"),
}
INNER = {"adi": 50, "rungekutta": 60}  # equal parts of a step are the only loop


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("kind", [*STEPS, *LEVELS])
def test_steps_are_those_that_the_program_counts_or_none_is_claimed(profile, kind, ranks):
    """On busy cores, too: no time decides."""
    steps, level = LEVELS.get(kind) or (STEPS[kind], f"{STEPS[kind]} x (")
    (row,) = reporter.rows("steps", profile("loops", ranks, kind, str(steps)).folder)
    found = (True, steps) if kind in STEPS else (False, 0)
    assert (row["certainty"] != "none", row["steps"]) == found, row["loops"]
    assert level in row["loops"]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("kind", INNER)
def test_equal_parts_of_a_step_are_not_called_steps(profile, kind, ranks):
    (row,) = reporter.rows("steps", profile("loops", ranks, kind, str(INNER[kind])).folder)
    assert (row["certainty"], row["steps"]) == ("none", 0), row["loops"]


def test_ensembles_that_never_talk_to_each_other_have_steps_each(profile):
    (row,) = reporter.rows("steps", profile("loops", 4, "ensembles", "80").folder, "--loop", "1")
    assert (row["steps"], row["communicator"]) == (80, "Comm_split {0-1}")
    assert row["apart"].startswith("ranks 2-3: 20 steps of 1 bulk MPI_Allreduce, median ")
