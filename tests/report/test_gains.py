"""No promise is larger than what it is made from: over random jobs, and where ranks lack cores."""

from __future__ import annotations

from random import Random

import pytest
from cases import by_seed
from planted_job import Program
from read_once import read_once

RANKS, SEEDS, FIRST_SEEDS = 4, 40, 16
OF_CALLS = ("small_messages", "tiny_messages", "overlap", "barriers")
SAVING = {*OF_CALLS, "imbalance", "progress", "slow_link", "together"}


def random_job(chance: Random) -> Program:
    """Computation, one rank that may be slow, and calls of each kind that a rule speaks of."""
    program = Program(RANKS)
    pairs = [program.job.group(ranks, "pair") for ranks in ([0, 1], [1, 2], [2, 3])]
    slow_ns, kinds = chance.choice((0, 0, 300_000)), chance.sample(range(8), 3)
    for number in range(90):
        for rank in range(RANKS):
            program.compute(rank, chance.randrange(1, 400_000) + slow_ns * (rank == 2))
        kind = kinds[number % 3]
        if kind == 0:
            for pair in pairs:
                call = chance.choice(("MPI_Barrier", "MPI_Allreduce"))
                size = 0 if call == "MPI_Barrier" else 8
                program.collective(call, pair, chance.randrange(1, 200_000), message_bytes=size)
        elif kind == 1:
            program.meet(*chance.sample(range(RANKS), 2))
        elif kind == 2:
            program.start_and_wait(chance.randrange(1, 300_000))
        elif kind == 3:
            for size in (4_096, 1 << 20):
                moving_ns = chance.randrange(100_000, 200_000)
                program.collective(
                    "MPI_Allreduce", program.job.world, moving_ns, message_bytes=size
                )
        elif kind == 4:
            moving_ns = chance.randrange(1, 200_000)
            program.collective("MPI_Allreduce", program.job.world, moving_ns, message_bytes=8)
        elif kind == 5:
            ring(program, slow_ns=chance.randrange(1_000_000))
        elif kind == 6:
            held_up(program, chance.randrange(1_000_000))
        else:
            program.collective("MPI_Allreduce", program.job.world, chance.randrange(1, 300_000))
    return program


def ring(program: Program, slow_ns: int) -> None:
    """Each rank receives from the one before, which sends 2 us later; from rank 0 it takes
    longer."""
    for source in (1, 3, 0, 2):
        rank = (source + 1) % RANKS
        begin_ns = max(program.now_ns[source], program.now_ns[rank])
        end_ns = begin_ns + 20_000 + slow_ns * (source == 0)
        program.job.receive(rank, source, begin_ns, end_ns)
        program.job.send(source, rank, begin_ns + 2_000, begin_ns + 3_000)
        program.now_ns[source], program.now_ns[rank] = begin_ns + 3_000, end_ns


def held_up(program: Program, away_ns: int) -> None:
    """All wait for an Iallreduce at once, but for one rank in turn, without which it makes no
    progress."""
    begin_ns, away = max(program.now_ns), program.job.world.begun % RANKS
    end_ns = begin_ns + away_ns + 10_000
    program.job.collective("MPI_Iallreduce", [begin_ns] * RANKS, [end_ns - begin_ns] * RANKS)
    for rank in range(RANKS):
        program.job.call("MPI_Wait", begin_ns + (away_ns if rank == away else 200), end_ns, rank)
        program.now_ns[rank] = end_ns


def test_the_jobs_have_something_for_each_rule(report, tmp_path):
    found = set()
    for seed in (0, 3, 4, 5, 8):
        path = random_job(Random(seed)).end().write(tmp_path / "run.db")
        found |= {row["rule"] for row in report("advise", path, "--json").rows if row["saving_ns"]}
    assert found >= SAVING


@pytest.mark.parametrize("seed", by_seed(range(SEEDS), FIRST_SEEDS))
def test_no_gain_is_larger_than_what_it_is_made_from(report, tmp_path, seed):
    """Transfers of subgroups, one after the other, hold up the others: played without them, the
    run would gain more than they last."""
    job = random_job(Random(seed)).end()
    path = job.write(tmp_path / "run.db")
    with read_once():
        rows, (run,) = report("advise", path, "--json").rows, report("summary", path, "--json").rows
        calls = report("late", path, "--by", "call", "--json").rows
        ranks = report("ranks", path, "--per-rank", "--json").rows
        (whole,) = report("late", path, "--by", "run", "--json").rows
    for row in (row for row in rows if row["saving_ns"]):
        if row["rule"] in OF_CALLS:
            moved_ns = sum(call["transfer_ns"] for call in calls if call["call"] in row["title"])
            assert row["saving_ns"] <= 1 + moved_ns / RANKS, row["title"]
        if row["rule"] == "imbalance" and run["late_gain_ns"] is None:  # in single calls
            waited_ns = sum(each["wait_ns"] for each in calls if each["call"] == row["call"])
            assert row["saving_ns"] <= 1 + waited_ns / RANKS
        elif row["rule"] == "imbalance":
            assert row["saving_ns"] == run["late_gain_ns"]
        assert row["rule"] != "progress" or row["saving_ns"] <= 1 + whole["wait_ns"] / RANKS
        outside_ns = (whole["counted_ns"] - whole["total_ns"]) / RANKS
        assert row["rule"] != "overlap" or row["saving_ns"] <= 1 + outside_ns, row["title"]
        assert row["saving_ns"] <= 1 + max(rank["mpi_ns"] for rank in ranks), row["title"]


@pytest.mark.parametrize("seed", range(5))
def test_where_ranks_lack_cores_no_call_is_to_be_changed(report, tmp_path, seed):
    job = random_job(Random(seed)).end()
    for rank in range(RANKS):
        job.add("fact", world_rank=rank, key="begin.affinity", value="0")
    rows = report("advise", job.write(tmp_path / "run.db"), "--json").rows
    found = [row["rule"] for row in rows if row["found"]]
    assert found[0] == "cores" and not {*found} & {*OF_CALLS}
