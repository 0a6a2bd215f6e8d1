"""A rank that is late beyond chance, but causes less than half of the waiting, is said by every
command to be the one that the waiting is mostly for; in the healthy twin nobody is."""

from __future__ import annotations

import random
import re

import pytest
from cases import of
from commprof_report.base import Texts
from commprof_report.late.verdict import Participants, blame, costs_of
from planted_job import HostClock, Job

MS = 1_000_000
RANKS = 8
SHARE = 0.41
HOSTS = dict.fromkeys(range(RANKS), "node")


def stumbling(share: float, late_ns: int = 20 * MS, transfer_ns: int = MS, more_ns: int = 0) -> Job:
    """In each of 82 steps one rank is late: rank 3 in this share of them, else any other one, at
    random."""
    chance = random.Random(1)
    job = Job([HostClock()] * RANKS, wall_ns=82 * 100 * MS + more_ns)
    others = [rank for rank in range(RANKS) if rank != 3]
    turns = [3] * round(82 * share) + [
        others[place % len(others)] for place in range(82 - round(82 * share))
    ]
    chance.shuffle(turns)
    job.collective("MPI_Bcast", [0] * RANKS, [1_000] * RANKS, 0, message_bytes=40_000_000)
    for step, late in enumerate(turns):
        begin_ns = step * 100 * MS + 10 * MS
        arrivals = [begin_ns + late_ns * (rank == late) for rank in range(RANKS)]
        job.collective("MPI_Allreduce", arrivals, [transfer_ns] * RANKS, message_bytes=40_000_000)
    for rank in range(RANKS):
        job.thread(rank, is_main=1)
    return job


@pytest.fixture
def said(report, tmp_path):
    """The text that a command prints of a job."""

    def ask(job: Job, *words: str) -> str:
        return " ".join(report(*words, job.write(tmp_path / "run.db")).out.split())

    return ask


def page_of(report, tmp_path, job: Job) -> str:
    target = tmp_path / "page.html"
    report("html", job.write(tmp_path / "run.db"), "--output", target)
    return " ".join(re.sub(r"<[^>]*>", " ", target.read_text()).split())


def test_every_command_says_whom_the_waiting_is_mostly_for(report, said, tmp_path):
    job = stumbling(SHARE)
    sentence = r"Rank 3 is often late: it causes 4\d\.\d % of the waiting\. Without that the run "
    cause = r"rank 3 on node00 causes 4\d\.\d % of the waiting"
    (row,) = report("late", job.write(tmp_path / "run.db"), "--by", "run", "--json").rows
    assert of(row, "verdict late_ranks late_hosts") == ("mostly", "3", "node00")
    assert 0.3 < row["late_share"] < 0.5
    for command in ("late", "summary"):
        assert re.search(rf"^{sentence}.*Cause {cause}", said(job, command)), command
    steps = r"Slowest rank rank 3 in 3\d of 8\d steps: the others wait about 20\.0 ms for it in "
    assert re.search(f"{steps}.*Late {sentence}", said(job, "steps"))
    assert re.search(r"waiting \(4\d\.\d % for rank 3\)", said(job, "steps"))
    (advice,) = [
        found
        for found in report("advise", tmp_path / "run.db", "--json").rows
        if found["rule"] == "imbalance"
    ]
    assert (advice["title"], advice["certainty"]) == ("rank 3 is waited for", "possible")
    assert re.search(cause, advice["evidence"])
    assert re.search(sentence, page_of(report, tmp_path, job))


def test_in_the_healthy_twin_nobody_is_named(report, said, tmp_path):
    job = stumbling(1 / RANKS)
    (row,) = report("late", job.write(tmp_path / "run.db"), "--by", "run", "--json").rows
    assert (row["verdict"], row["late_ranks"]) == ("spread", None)
    (steps,) = report("steps", tmp_path / "run.db", "--json").rows
    assert steps["slowest_ranks"] is None
    for command in ("late", "summary", "steps", "advise"):
        assert " late: " not in said(job, command), command
    assert " late: " not in page_of(report, tmp_path, job)


def test_where_transfer_dominates_it_is_said_as_well(report, said, tmp_path):
    (row,) = report(
        "late",
        stumbling(SHARE, transfer_ns=40 * MS).write(tmp_path / "run.db"),
        "--by",
        "run",
        "--json",
    ).rows
    assert (row["verdict"], row["late_ranks"]) == ("transfer", "3")
    sentence = said(stumbling(SHARE, transfer_ns=40 * MS), "late")
    assert re.search(r"waiting for ranks 1\d\.\d %, also for rank 3\. Cause rank 3 on", sentence)
    assert "Cause" not in said(stumbling(1 / RANKS, transfer_ns=40 * MS), "late")


def stumbling_in_calls(share: float, ranks: int = 6) -> Job:
    """In this share of 80 steps rank 3 is late for an Allreduce and rank 5 for a Barrier; else any
    other ranks, at random."""
    chance, job = random.Random(1), Job([HostClock()] * ranks, wall_ns=80 * 100 * MS)
    all_turns = []
    for own in (3, 5):
        others = [rank for rank in range(ranks) if rank != own]
        turns = [own] * round(80 * share)
        turns += [others[place % len(others)] for place in range(80 - len(turns))]
        chance.shuffle(turns)
        all_turns.append(turns)
    for step, turns in enumerate(zip(*all_turns)):
        for call, late, at_ms in zip(("MPI_Allreduce", "MPI_Barrier"), turns, (10, 60)):
            at_ns = (step * 100 + at_ms) * MS
            arrivals = [at_ns + 20 * MS * (rank == late) for rank in range(ranks)]
            job.collective(call, arrivals, [MS] * ranks)
    return job


def test_ranks_that_the_waiting_in_single_calls_is_mostly_for_are_named(report, said, tmp_path):
    sentence = (
        "Different ranks are late in different calls: rank 3 in MPI_Allreduce, rank 5 in "
        r"MPI_Barrier\. .*Cause rank 3 causes 45\.0 % of the waiting in MPI_Allreduce; rank 5 "
    )
    for command in ("late", "summary"):
        assert re.search(sentence, said(stumbling_in_calls(0.45), command)), command
    advice = [
        (row["title"].split(" in ")[0], row["certainty"], row["call"])
        for row in report("advise", tmp_path / "run.db", "--json").rows
        if row["rule"] == "imbalance"
    ]
    assert sorted(advice) == [
        ("rank 3 is waited for", "possible", "MPI_Allreduce"),
        ("rank 5 is waited for", "possible", "MPI_Barrier"),
    ]
    assert "Late Different ranks are late in different calls" in said(
        stumbling_in_calls(0.45), "steps"
    )


def test_where_ranks_share_cores_nobody_is_named_for_less_than_half(report, tmp_path):
    job = stumbling(SHARE)
    for rank in range(RANKS):
        job.add("fact", world_rank=rank, key="begin.affinity", value="0-1")
    (row,) = report("late", job.write(tmp_path / "run.db"), "--by", "run", "--json").rows
    assert (row["verdict"], row["late_ranks"]) == ("cores", None)


def test_of_300_healthy_runs_whose_ranks_stay_late_for_a_while_at_most_6_name_somebody():
    """At ten times the level 17 do."""
    participants = Participants(range(RANKS), HOSTS, {0: range(RANKS)}, Texts())
    accused = 0
    for seed in range(300):
        chance, drift, late = random.Random(seed), [0.0] * RANKS, []
        for step in range(100):
            drift = [0.9 * own + chance.gauss(0, 1) for own in drift]
            arrivals = [own + chance.expovariate(0.5) for own in drift]
            last = max(range(RANKS), key=arrivals.__getitem__)
            cost_ns = sum(arrivals[last] - arrival for arrival in arrivals) * MS
            late.append((last, cost_ns))
        accused += blame(costs_of(range(100), *zip(*late)), participants).named is not None
    assert accused <= 6
