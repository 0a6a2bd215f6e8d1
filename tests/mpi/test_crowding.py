"""Ranks bound to one core, and the same ranks with a core each: the first wait for it, and the
reports say so; of the second they say nothing, unless other work on the machine has the cores."""

from __future__ import annotations

import os

import pytest

from . import reporter
from .harness import COMMPROF_RUN, Run, command_for, launch

pytestmark = pytest.mark.slow

COMPUTES = ("computing", "16", "50000", "0", "-1")  # 16 times for 50 ms, and an Allreduce


@pytest.fixture(scope="module")
def bound_to(mpi, tmp_path_factory):
    """bound_to("0,1"): two ranks that may run on these cores."""

    def run(cores: str) -> Run:
        folder = tmp_path_factory.mktemp(f"{mpi.name}-bound")
        command = [
            "taskset", "-c", cores, str(COMMPROF_RUN), *command_for(mpi, "plants"), *COMPUTES,
        ]
        outcome = launch(mpi, 2, command, folder, {"COMMPROF_OUTPUT": str(folder / "run")})
        assert outcome.exit_status == 0, outcome
        return Run(2, folder / "run", outcome)

    return run


def test_two_ranks_on_one_core_are_said_to_share_it(bound_to):
    run = bound_to(str(min(os.sched_getaffinity(0))))
    (row,) = reporter.rows("summary", run.folder)
    assert row["crowded_ranks"] == "0-1"
    assert row["crowding"].startswith("ranks 0-1 waited for a core ")
    assert row["involuntary_switches"] is not None
    assert row["crowding"] in reporter.text("summary", run.folder)


def test_two_ranks_on_two_cores_have_enough(bound_to):
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("one core")
    run = bound_to(",".join(map(str, cores)))
    (row,) = reporter.rows("summary", run.folder)
    ranks = reporter.rows("ranks", run.folder, "--per-rank")
    waited = [each["rank"] for each in ranks if each["core_wait_share"] > 0.04]
    assert row["crowding"] is None or waited
    assert ("Crowded" in reporter.text("summary", run.folder)) == (row["crowding"] is not None)
