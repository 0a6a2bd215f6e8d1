"""No promise is larger than what it is made from: over random jobs, and where ranks lack cores."""

from __future__ import annotations

from random import Random

import pytest
from planted_job import Program

RANKS, SEEDS = 4, 40
OF_CALLS = ("small_messages", "tiny_messages", "overlap", "barriers", "waiting_messages")


def random_job(chance: Random) -> Program:
    """Computation, one rank that may be slow, and calls of each kind that a rule speaks of."""
    program = Program(RANKS)
    pairs = [program.job.group(ranks, "pair") for ranks in ([0, 1], [1, 2], [2, 3])]
    slow_ns, kinds = chance.choice((0, 0, 300_000)), chance.sample(range(4), 3)
    for _ in range(60):
        for rank in range(RANKS):
            program.compute(rank, chance.randrange(1, 400_000) + slow_ns * (rank == 2))
        kind = chance.choice(kinds)
        if kind == 0:
            for pair in pairs:
                call = chance.choice(("MPI_Barrier", "MPI_Allreduce"))
                size = 0 if call == "MPI_Barrier" else 8
                program.collective(call, pair, chance.randrange(1, 200_000), message_bytes=size)
        elif kind == 1:
            program.meet(*chance.sample(range(RANKS), 2))
        else:
            call = "MPI_Iallreduce" if kind == 2 else "MPI_Allreduce"
            program.collective(call, program.job.world, chance.randrange(1, 300_000))
    return program


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_gain_is_larger_than_what_it_is_made_from(report, tmp_path, seed):
    """Transfers of subgroups, one after the other, hold up the others: played without them, the
    run would gain more than they last."""
    job = random_job(Random(seed)).end()
    path = job.write(tmp_path / "run.db")
    rows, (run,) = report("advise", path, "--json").rows, report("summary", path, "--json").rows
    calls = report("late", path, "--by", "call", "--json").rows
    ranks = report("ranks", path, "--per-rank", "--json").rows
    for row in (row for row in rows if row["saving_ns"]):
        if row["rule"] in OF_CALLS:
            moved_ns = sum(call["transfer_ns"] for call in calls if call["call"] in row["title"])
            assert row["saving_ns"] <= 1 + moved_ns / RANKS, row["title"]
        assert row["rule"] != "imbalance" or row["saving_ns"] == run["late_gain_ns"]
        assert row["saving_ns"] <= 1 + max(rank["mpi_ns"] for rank in ranks), row["title"]


@pytest.mark.parametrize("seed", range(5))
def test_where_ranks_lack_cores_no_call_is_to_be_changed(report, tmp_path, seed):
    job = random_job(Random(seed)).end()
    for rank in range(RANKS):
        job.add("fact", world_rank=rank, key="begin.affinity", value="0")
    rows = report("advise", job.write(tmp_path / "run.db"), "--json").rows
    found = [row["rule"] for row in rows if row["found"]]
    assert found[0] == "cores" and not {*found} & {*OF_CALLS}
