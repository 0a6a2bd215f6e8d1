"""A rank that is late beyond chance, but causes less than half of the waiting, is said by every
command to be the one that the waiting is mostly for; in the healthy twin nobody is."""

from __future__ import annotations

import random
import re

from commprof_report.base import Texts
from commprof_report.late.verdict import Participants, blame, costs_of
from planted_job import HostClock, Job
from read_once import read_once

MS = 1_000_000
RANKS = 8
SHARE = 0.41
HOSTS = dict.fromkeys(range(RANKS), "node")


def stumbling(share: float) -> Job:
    """In each of 82 steps one rank is late: rank 3 in this share of them, else any other one, at
    random."""
    chance = random.Random(1)
    job = Job([HostClock()] * RANKS, wall_ns=82 * 100 * MS)
    others = [rank for rank in range(RANKS) if rank != 3]
    turns = [3] * round(82 * share) + [
        others[place % len(others)] for place in range(82 - round(82 * share))
    ]
    chance.shuffle(turns)
    job.collective("MPI_Bcast", [0] * RANKS, [1_000] * RANKS, 0, message_bytes=40_000_000)
    for step, late in enumerate(turns):
        begin_ns = step * 100 * MS + 10 * MS
        arrivals = [begin_ns + 20 * MS * (rank == late) for rank in range(RANKS)]
        job.collective("MPI_Allreduce", arrivals, [MS] * RANKS, message_bytes=40_000_000)
    for rank in range(RANKS):
        job.thread(rank, is_main=1)
    return job


def test_in_the_healthy_twin_nobody_is_named(report, no_pictures, tmp_path):
    path = stumbling(1 / RANKS).write(tmp_path / "run.db")
    with read_once():
        (row,) = report("late", path, "--by", "run", "--json").rows
        assert (row["verdict"], row["late_ranks"]) == ("spread", None)
        (steps,) = report("steps", path, "--json").rows
        assert steps["slowest_ranks"] is None
        for command in ("late", "summary", "steps", "advise"):
            assert " late: " not in report(command, path).prose, command
    report("html", path, "--output", tmp_path / "page.html")
    page = re.sub(r"<[^>]*>", " ", (tmp_path / "page.html").read_text())
    assert " late: " not in " ".join(page.split())


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
