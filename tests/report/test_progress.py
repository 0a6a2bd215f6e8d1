"""Waits for ranks that are outside MPI while an operation needs them, and slow links: planted jobs
in which every moment is known."""

from __future__ import annotations

import pytest
from planted_job import HostClock, Job

US, MS = 1_000, 1_000_000
ROUND_NS = 100 * MS


def job_of(ranks: int) -> Job:
    return Job([HostClock()] * ranks, wall_ns=20 * ROUND_NS)


def held_up(back_ns: int, *, end_ns: int | None = None, ranks: int = 3, rounds: int = 16) -> Job:
    """Each rank starts an Iallreduce and waits for it at once, but for rank 1, which comes back
    after back_ns. All return 1 ms after that, or at end_ns."""
    job = job_of(ranks)
    for number in range(rounds):
        begin_ns = number * ROUND_NS
        done_ns = begin_ns + (back_ns + MS if end_ns is None else end_ns)
        starts = [begin_ns + rank for rank in range(ranks)]
        job.collective("MPI_Iallreduce", starts, [done_ns - max(starts)] * ranks)
        for rank in range(ranks):
            wait_ns = begin_ns + (back_ns if rank == 1 else US)
            job.call("MPI_Wait", wait_ns, max(done_ns, wait_ns + US), rank)
    return job


def by_state(late, job: Job) -> dict[str, int]:
    return {row["wait_state"]: row["wait_ns"] for row in late(job, "state")}


def test_where_all_come_back_at_once_nobody_is_held_up(report, tmp_path, late):
    job = held_up(US)
    assert by_state(late, job) == {}
    assert "progress" not in report("late", job.write(tmp_path / "run.db")).out


def test_what_is_longer_for_another_reason_is_no_wait_for_progress(late):
    """The rank is back after 1 ms of 20 that others show to be too many."""
    job = held_up(MS, end_ns=21 * MS)
    starts = [17 * ROUND_NS + rank for rank in range(3)]
    job.collective("MPI_Iallreduce", starts, [US] * 3)
    for rank in range(3):
        job.call("MPI_Wait", starts[rank] + 100, starts[-1] + US, rank)
    assert by_state(late, job) == {}


def ring(
    slow: dict[tuple[int, int], int],
    ranks: int = 4,
    wait_ns: int = 2 * US,
    receive: str = "MPI_Recv",
) -> Job:
    """Each rank receives from the one before, which sends wait_ns after it, first the odd ones; a
    message of a slow pair takes so much longer. Then all meet."""
    job = job_of(ranks)
    for number in range(16):
        ends = [0] * ranks
        for source in sorted(range(ranks), key=lambda rank: rank % 2):
            rank = (source + 1) % ranks
            begin_ns = number * ROUND_NS + (1 + 25 * (source % 2)) * MS
            sent_ns = begin_ns + wait_ns
            ends[rank] = max(ends[rank], sent_ns + 10 * US + slow.get((source, rank), 0))
            job.receive(rank, source, begin_ns, ends[rank], call=receive)
            if receive == "MPI_Irecv":
                job.call("MPI_Wait", begin_ns + US, ends[rank], rank)
            job.send(source, rank, sent_ns, sent_ns + US)
        job.collective("MPI_Allreduce", [end + ROUND_NS // 4 for end in ends], [US] * ranks)
    return job


def link_of(run: dict) -> tuple:
    return tuple(run[f"slow_link_{name}"] for name in ("sender", "receiver", "times", "excess_ns"))


@pytest.mark.parametrize("receive", ["MPI_Recv", "MPI_Irecv"])
def test_a_slow_link_is_named_as_one(report, late, tmp_path, receive):
    job = ring({(1, 2): 20 * MS}, receive=receive)
    (run,) = late(job, "run")
    assert link_of(run) == (1, 2, pytest.approx(2_001), 16 * 20 * MS)
    text = " ".join(report("late", job.write(tmp_path / "run.db")).out.split())
    said = "essages from rank 1 to rank 2 take 2,001 times as long as others"
    assert text.startswith(f"M{said}. Without that the run is 320 ms")
    assert f"Slow link m{said}, 320 ms more" in text


@pytest.mark.parametrize(
    "job",
    [ring({}), ring({(1, 2): 15 * US}), ring({(1, 0): 20 * MS}, ranks=2)],
    ids=["none", "less than three times", "no other pairs"],
)
def test_links_that_are_like_others_are_not_named(report, late, tmp_path, job):
    (run,) = late(job, "run")
    assert link_of(run) == (None,) * 4
    assert "link" not in report("late", job.write(tmp_path / "run.db")).out


def test_messages_that_had_come_before_are_no_measure_of_a_link(late):
    """Others' receives find their messages there; how long these took is not seen."""
    (run,) = late(ring({(1, 2): 20 * MS}, wait_ns=-5 * US), "run")
    assert run["slow_link_sender"] is None


@pytest.mark.parametrize(("call", "depends"), [("MPI_Ibcast", 1), ("MPI_Ireduce", 0)])
def test_a_rank_that_depends_on_nobody_may_be_held_up_too(late, call, depends):
    """The root of an Ibcast, or a leaf of an Ireduce: all of its wait was transfer."""
    job = job_of(3)
    for number in range(16):
        begin_ns = number * ROUND_NS
        job.collective(call, [begin_ns] * 3, [31 * MS] * 3, root=0)
        for rank in range(3):
            back_ns = begin_ns + (30 * MS if rank == 2 else US)
            job.call("MPI_Wait", back_ns, begin_ns + 31 * MS, rank)
        job.collective("MPI_Barrier", [begin_ns + 40 * MS] * 3, [US] * 3)
    waited = 16 * (30 * MS - US)
    assert by_state(late, job) == {"no progress": 2 * waited}
    assert late(job)[depends]["wait_ns"] == waited
    assert late(job, "run")[0]["late_ranks"] == "2"
