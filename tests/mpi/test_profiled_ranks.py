"""COMMPROF_RANKS with real ranks: the chosen ones are recorded, the others run as without the
profiler."""

from __future__ import annotations

import pytest

from .reporter import answer

pytestmark = pytest.mark.one_mpi

PROGRAM = "pcontrol"


@pytest.mark.parametrize(("setting", "ranks"), [("0-3:2", [0, 2]), ("3,1", [1, 3])])
def test_the_chosen_ranks_leave_a_profile_and_the_others_nothing(profile, plain, setting, ranks):
    run = profile(PROGRAM, 4, env={"COMMPROF_RANKS": setting})
    assert run.files() == [f"rank-{rank}.db" for rank in ranks]
    assert run.outcome.stdout == plain(PROGRAM, 4).stdout
    (line,) = (line for line in run.outcome.stderr.splitlines() if "commprof:" in line)
    assert "profile of 2 of 4 ranks in" in line
    shown = answer("summary", run.folder)
    assert f"2 of 4 ranks (chosen: {setting})" in shown.stdout and shown.stderr == ""


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
    shown = answer("summary", run.folder)
    assert "1 of 4 ranks (chosen: one-per-node)" in shown.stdout and shown.stderr == ""


def test_a_list_that_names_nobody_is_said_once(profile):
    run = profile(PROGRAM, 2, env={"COMMPROF_RANKS": "64-127"})
    assert run.files() == []
    said = "COMMPROF_RANKS=64-127 names none of the job's ranks, 0 to 1: nothing is recorded"
    assert run.outcome.stderr.count(said) == 1
