"""COMMPROF_RANKS with real ranks: the chosen ones are recorded, the others run as without the
profiler."""

from __future__ import annotations

import subprocess

import pytest

from .harness import REPORT, Run
from .libraries import SYSTEM_PYTHON

pytestmark = pytest.mark.one_mpi

PROGRAM = "pcontrol"


def report(run: Run, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SYSTEM_PYTHON, REPORT, *words, run.folder], capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("setting", "ranks", "said"),
    [("0-3:2", [0, 2], "2 of 4 ranks in"), ("3,1", [1, 3], "2 of 4 ranks in")],
)
def test_the_chosen_ranks_leave_a_profile_and_the_others_nothing(
    profile, plain, setting, ranks, said
):
    run = profile(PROGRAM, 4, env={"COMMPROF_RANKS": setting})
    assert run.files() == [f"rank-{rank}.db" for rank in ranks]
    assert run.outcome.stdout == plain(PROGRAM, 4).stdout
    assert [
        line
        for line in run.outcome.stderr.splitlines()
        if "commprof:" in line and f"profile of {said}" not in line
    ] == []
    assert run.outcome.stderr.count("profile of") == 1
    answer = report(run, "summary")
    assert f"2 of 4 ranks (chosen: {setting})" in answer.stdout and answer.stderr == ""


def test_chosen_ranks_count_what_they_count_among_all(profile):
    alone, all_ranks = profile(PROGRAM, 4, env={"COMMPROF_RANKS": "2"}), profile(PROGRAM, 4)
    calls = (
        "SELECT call, bytes, sum(count) FROM cell WHERE measure = 'call' GROUP BY call, bytes "
        "ORDER BY 1, 2"
    )
    assert alone.query(2, calls) == all_ranks.query(2, calls)


def test_one_rank_per_node(profile):
    run = profile(PROGRAM, 4, env={"COMMPROF_RANKS": "one-per-node"})
    assert run.files() == ["rank-0.db"]
    assert "profile of one rank per node, of 4, in" in run.outcome.stderr
    answer = report(run, "summary")
    assert "1 of 4 ranks (chosen: one-per-node)" in answer.stdout and answer.stderr == ""


def test_a_list_that_names_nobody_is_said_once(profile):
    run = profile(PROGRAM, 2, env={"COMMPROF_RANKS": "64-127"})
    assert run.files() == []
    assert (
        run.outcome.stderr.count(
            "COMMPROF_RANKS=64-127 names none of the job's ranks, 0 to 1: nothing is recorded"
        )
        == 1
    )
