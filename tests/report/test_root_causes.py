"""Root causes of waiting: planted jobs with chains of waits, in which it is known
who delayed whom."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cases import by_seed, of
from commprof_report.base import Texts
from commprof_report.late.wait_split import OUTSIDE, WAITING, Lines
from planted_job import HostClock, Job, Program

US, MS = 1_000, 1_000_000
STEPS = 40


@pytest.fixture
def text(report, tmp_path):
    def ask(job: Job, command: str = "late") -> str:
        return report(command, job.write(tmp_path / "run.db")).out

    return ask


def column(rows: list[dict], key: str) -> list:
    return [row[key] for row in rows]


def grid(
    delays: list[dict[int, int]],
    jitter_ns: int = 0,
    unsplit: str = "",
    seed: int = 1,
    has_marks: bool = False,
) -> Job:
    """Ranks 0 to 3 as a 2 x 2 grid. In each step, after 10 ms of work, the rows {0,1} and {2,3} sum
    up, then the columns {0,2} and {1,3}. A rank works longer before the row by its delay in that
    step. unsplit: rows are not collectives but this call. has_marks: each step is marked, its first
    4 ms are in region forward, the rest in backward."""
    chance, program = random.Random(seed), Program(4, start_ns=20 * MS)
    rows, columns = (
        [program.job.group(ranks, f"{what} {ranks[0]}") for ranks in pairs]
        for what, pairs in GRID.items()
    )
    region = 2 if has_marks else 0
    for rank in range(4) if has_marks else ():
        program.job.thread(rank, is_main=1)
        for number, name in enumerate(("forward", "backward"), 1):
            program.job.add("region", world_rank=rank, region=number, name=name)
    for step, of_step in enumerate(delays, 1):
        begins_ns = list(program.now_ns)
        for rank in range(4):
            program.compute(
                rank,
                10 * MS + of_step.get(rank, 0) + (chance.randrange(jitter_ns) if jitter_ns else 0),
            )
        for row in rows:
            if unsplit:
                last_ns = max(program.now_ns[rank] for rank in row.ranks)
                for rank in row.ranks:
                    program.job.call(unsplit, program.now_ns[rank], last_ns + 10 * US, rank)
                    program.now_ns[rank] = last_ns + 10 * US
            else:
                program.collective("MPI_Allreduce", row, region=region)
        for column_ in columns:
            program.collective("MPI_Allgather", column_, region=region)
        for rank in range(4) if has_marks else ():
            _mark(program.job, rank, step, begins_ns[rank], program.now_ns[rank], 4 * MS)
    return program.end()


def _mark(job: Job, rank: int, step: int, begin_ns: int, end_ns: int, forward_ns: int) -> None:
    begin_ns, between_ns, end_ns = (
        job.time(rank, time_ns) for time_ns in (begin_ns, begin_ns + forward_ns, end_ns)
    )
    job.add("step", world_rank=rank, step=step, begin_ns=begin_ns, end_ns=end_ns, thread=0)
    for region, span in ((1, (begin_ns, between_ns)), (2, (between_ns, end_ns))):
        times = {"begin_ns": span[0], "end_ns": span[1]}
        job.add("region_span", world_rank=rank, thread=0, region=region, **times)


GRID = {"row": [(0, 1), (2, 3)], "column": [(0, 2), (1, 3)]}


def test_of_ranks_that_delay_different_ones_at_once_the_gain_is_counted_once(late):
    """Ranks 2 and 3 of eight ranks in pairs are late in theirs, 6 hardly: then 4 is done last."""
    program = Program(8)
    pairs = [program.job.group(ranks) for ranks in ((0, 2), (1, 3), (4, 6), (5, 7))]
    for _ in range(STEPS):
        for rank, late_ns in ((2, 8 * MS), (3, 8 * MS), (6, MS)):
            program.compute(rank, late_ns)
        for pair in pairs:
            program.collective("MPI_Allreduce", pair)
    (run,) = late(program.end(), "run")
    assert of(run, "late_ranks wait_ns late_gain_ns") == (
        "2-3",
        STEPS * (8 + 8 + 1) * MS,
        STEPS * (8 - 1) * MS,
    )


def test_culprits_that_alternate_share_the_cost_and_nobody_is_named(late):
    job = grid([{1 + step % 3: 8 * MS} for step in range(STEPS - 1)])
    assert column(late(job), "caused_ns") == [0, *[STEPS // 3 * 3 * 8 * MS] * 3]
    (run,) = late(job, "run")
    assert (run["verdict"], run["late_ranks"]) == ("spread", None)


def test_what_all_pieces_of_advice_save_together_is_their_sum(report, tmp_path):
    """Rank 2 works for 8 ms longer, and the barrier takes 2 ms."""
    program = Program(4)
    rows = [program.job.group(ranks, "row") for ranks in GRID["row"]]
    for _ in range(STEPS):
        for rank in range(4):
            program.compute(rank, 10 * MS + (8 * MS if rank == 2 else 0))
        for row in rows:
            program.collective("MPI_Allreduce", row)
        program.collective("MPI_Barrier", program.job.world, 2 * MS)
    answer = report("advise", program.end().write(tmp_path / "run.db"), "--json").rows
    saved = {row["rule"]: row["saving_ns"] for row in answer if row["saving_ns"]}
    assert {rule: round(ns / STEPS / MS, 1) for rule, ns in saved.items()} == {
        "imbalance": 8.0,
        "barriers": 2.0,
        "together": 10.0,
    }


@pytest.mark.parametrize("seed", by_seed(range(10), 4))
def test_without_a_delay_nobody_is_named(late, text, seed):
    job = grid([{}] * STEPS, jitter_ns=4 * MS, seed=seed)
    (run,) = late(job, "run")
    assert (run["verdict"], run["late_ranks"]) == ("spread", None)


def test_the_cause_of_a_call_that_was_not_split_is_not_known(late, text):
    """Ranks 2 and 3 exchange by a call that is not split: why 3 comes late to its column nobody
    knows; 2 is late on its own."""
    job = grid([{2: 8 * MS}] * STEPS, unsplit="MPI_Neighbor_alltoall")
    assert column(late(job), "caused_ns") == [0, 0, STEPS * 8 * MS, 0]
    assert late(job, "run")[0]["unknown_cause_ns"] == STEPS * 8 * MS
    assert "No known cause  50.0 % of the waiting" in text(job)


def test_causes_within_gaps_of_the_samples_are_not_known(late):
    """Receives take notable time, and only their windows in the second half are sampled."""
    job = grid([{2: 8 * MS}] * STEPS)
    job.call("MPI_Recv", 10, 19 * MS, 2)
    for rank in range(4):
        job.window(rank, job.wall_ns // 2 if rank == 2 else 0, job.wall_ns)
    unknown_ns = late(job, "run")[0]["unknown_cause_ns"]
    assert 0.4 * 3 * STEPS * 8 * MS < unknown_ns < 0.6 * 3 * STEPS * 8 * MS


# Waits for ranks that are outside MPI while an operation needs them, and slow links.

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


@pytest.mark.parametrize("idle", range(3))
def test_a_rank_without_sampled_calls_is_outside_mpi(idle):
    begins = np.cumsum([0, *(2 * (rank != idle) for rank in range(2))])
    ends, states = np.array([5, 9, 4, 10]), np.array([OUTSIDE, WAITING] * 2)
    lines = Lines(range(3), begins, ends, states, states, states, Texts())
    spent = lines.spent_between(np.arange(3), np.zeros(3, np.int64), np.full(3, 12))
    others = iter([[8, 4], [6, 6]])
    expected = [[12, 0] if rank == idle else next(others) for rank in range(3)]
    assert spent[:, [OUTSIDE, WAITING]].tolist() == expected
