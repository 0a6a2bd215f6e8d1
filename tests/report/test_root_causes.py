"""Root causes of waiting: planted jobs with chains of waits, in which it is known
who delayed whom."""

from __future__ import annotations

import json
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
        job.add(
            "region_span",
            world_rank=rank,
            thread=0,
            region=region,
            begin_ns=span[0],
            end_ns=span[1],
        )


GRID = {"row": [(0, 1), (2, 3)], "column": [(0, 2), (1, 3)]}


def test_a_chain_of_waits_is_followed_to_the_rank_that_computed_longer(late, text):
    """Rank 3 waits for 2 in the row, 0 for 2 and 1 for 3 in the columns: all because of 2."""
    job = grid([{2: 8 * MS}] * STEPS)
    assert column(late(job), "cost_ns") == [0, 0, 2 * STEPS * 8 * MS, STEPS * 8 * MS]
    assert column(late(job), "caused_ns") == [0, 0, 3 * STEPS * 8 * MS, 0]
    assert column(late(job), "direct_ns") == [0, 0, 2 * STEPS * 8 * MS, 0]
    (run,) = late(job, "run")
    assert of(run, "verdict late_ranks late_share unknown_cause_ns") == ("imbalance", "2", 1, 0)
    assert run["late_gain_ns"] == STEPS * 8 * MS
    assert "rank 2 on node00 causes 100.0 % of the waiting" in text(job)
    assert "  root cause of  " in text(job)
    assert "Root cause of: the waiting" in " ".join(text(job).split())


def paths(report, tmp_path, job: Job) -> dict[int, list[dict]]:
    answer = report("steps", job.write(tmp_path / "run.db"), "--critical-path", "--json")
    assert answer.status == 0, answer.err
    found: dict[int, list[dict]] = {}
    for row in json.loads(answer.out):
        found.setdefault(row["step"], []).append(row)
    return found


def test_the_critical_path_leads_through_the_ranks_between_to_the_cause(report, tmp_path):
    """Ranks 0 and 1 end last, after their columns; their waits lead to 2, at once and through 3."""
    for step, rows in paths(report, tmp_path, grid([{2: 8 * MS}] * STEPS, has_marks=True)).items():
        assert [of(row, "rank state call time_ns") for row in rows[:1]] == [
            (2, "outside", "", 18 * MS)
        ], step
        assert sorted(row["call"] for row in rows[1:]) == ["MPI_Allgather", "MPI_Allreduce"]
        assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_all_commands_name_the_cause_and_not_the_rank_between(report, text, late):
    job = grid([{3: 8 * MS}] * STEPS)
    (run,) = late(job, "run")
    assert run["late_ranks"] == "3"
    for command in ("late", "summary"):
        assert "rank 3 on node00 causes 100.0 %" in text(job, command)
    assert "Rank 3 is waited for" in text(job, "advise")


def test_the_gain_is_that_of_the_ranks_that_cause_the_waiting(late, report, tmp_path):
    """Rank 2 is late by 8 ms in two steps of three. In the third rank 3 is late by 4 ms, and makes
    2 the last one in its column: that would not be saved."""
    job = grid([{3: 4 * MS} if step % 3 == 0 else {2: 8 * MS} for step in range(STEPS)])
    (run,) = late(job, "run")
    saved_ns = sum(step % 3 > 0 for step in range(STEPS)) * 8 * MS
    assert (run["late_ranks"], run["late_gain_ns"]) == ("2", saved_ns)
    (row,) = [
        row
        for row in report("advise", tmp_path / "run.db", "--json").rows
        if row["rule"] == "imbalance"
    ]
    assert (row["title"], row["saving_ns"]) == ("rank 2 is waited for", saved_ns)


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


def test_two_delays_share_the_wait_that_both_cause(late):
    """Rank 3 waits 6 ms for 2 and then works 4 ms longer itself, so rank 1 waits 10 ms in the
    column; 0 and 2 wait 4 ms in the barrier."""
    program = Program(4)
    rows, columns = (
        [program.job.group(ranks, what) for ranks in pairs] for what, pairs in GRID.items()
    )
    for _ in range(STEPS):
        program.compute(2, 6 * MS)
        for row in rows:
            program.collective("MPI_Allreduce", row)
        program.compute(3, 4 * MS)
        for pair in columns:
            program.collective("MPI_Allreduce", pair)
        program.collective("MPI_Barrier", program.job.world)
    found = late(program.end())
    assert column(found, "caused_ns") == [0, 0, STEPS * (6 + 6 + 6) * MS, STEPS * (4 + 4 + 4) * MS]
    # in the barrier rank 1 is the first of the last
    assert column(found, "direct_ns") == [0, 0, STEPS * (6 + 6) * MS, STEPS * 4 * MS]


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


def test_efficiencies_of_the_run_and_of_its_steps(late, report, tmp_path, text):
    """Each rank works for 10 ms a step, rank 2 for 18; then all have two calls of 10 us. The run
    begins with 20 ms of work."""
    job = grid([{2: 8 * MS}] * STEPS, has_marks=True)
    (run,) = late(job, "run")
    (steps,) = report("steps", tmp_path / "run.db", "--json").rows
    for row, begin in ((run, 20 / STEPS), (steps, 0)):
        mean, most = 12 + begin, 18 + begin
        assert row["load_balance"] == pytest.approx(mean / most, rel=1e-5)
        assert row["serialization"] == pytest.approx(1, rel=1e-5)
        assert row["transfer_efficiency"] == pytest.approx(most / (most + 0.02), rel=1e-5)
        assert row["parallel_efficiency"] == pytest.approx(mean / (most + 0.02), rel=1e-5)
    assert (
        "Efficiency 67.5 % = 67.6 % load balance x 100.0 % serialization x 99.9 % transfer "
        "(POP; from 100.0 % of the time without set-up)" in " ".join(text(job, "summary").split())
    )


def test_efficiencies_of_regions_show_where_ranks_differ(report, tmp_path):
    """4 ms of a step are in the region forward, where all work alike. In backward each rank works
    for 6 ms, rank 2 for 14, and all have two calls of 10 us."""
    path = grid([{2: 8 * MS}] * STEPS, has_marks=True).write(tmp_path / "run.db")
    rows = {row["region"]: row for row in report("regions", path, "--json").rows}
    for region, mean, most, calls in (("forward", 4, 4, 0), ("backward", 8, 14, 0.02)):
        assert rows[region]["load_balance"] == pytest.approx(mean / most, rel=1e-5)
        assert rows[region]["serialization"] == pytest.approx(1, rel=1e-5)
        assert rows[region]["transfer_efficiency"] == pytest.approx(most / (most + calls), rel=1e-5)
    lines = report("regions", path).out.splitlines()
    (backward,) = (line.split() for line in lines if line.startswith("backward "))
    assert backward[-4:] == ["load", "balance", "57.1", "%"] and backward[-6:-4] == ["57.1", "%"]


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


def test_a_step_has_one_headline_that_adds_up_and_names_the_cause(text):
    """8 ms of delay: 12 ms outside MPI on average, and three of four ranks wait for 8 ms."""
    job = grid([{2: 8 * MS}] * STEPS, has_marks=True)
    headline = (
        "18.0 ms = 12.0 outside MPI + 0.0 transfer + 6.0 waiting (mostly for rank 2, in backward)"
    )
    assert f"In a step       {headline}" in text(job, "steps")
    assert headline in " ".join(text(job, "summary").split())
