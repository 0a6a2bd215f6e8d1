"""Root causes of waiting: planted jobs with chains of waits, in which it is known
who delayed whom."""

from __future__ import annotations

import random

import pytest
from cases import of
from planted_job import Job, Program

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


@pytest.mark.parametrize("seed", range(10))
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
