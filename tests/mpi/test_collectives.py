"""Collectives on four ranks: exact counts, bytes and volumes of programs/collectives.c and
programs/in_place.c, each in six forms: blocking, nonblocking and persistent, plain and large-count.
"""

import pytest

RANKS = range(4)


def same(*sizes):
    """The same on every rank: (bytes, count, volume_bytes), ..."""
    return [{size: (count, volume) for size, count, volume in sizes}] * 4


def at_root(root, size, volume):
    """Once on every rank, with a volume at the root alone."""
    return [{size: (1, volume if rank == root else 0)} for rank in RANKS]


def own_share(bytes_of_rank_0, more_with_each_rank):
    """Once on every rank, which sends more the higher its rank is."""
    shares = [bytes_of_rank_0 + more_with_each_rank * rank for rank in RANKS]
    return [{share: (1, share)} for share in shares]


# For ranks 0 to 3: bytes -> (count, volume_bytes).
COLLECTIVES = {
    "Barrier": same((0, 3, 0)),
    "Bcast": [
        {40: (2, 80), 24: (1, 0), 0: (1, 0)},
        {40: (2, 0), 24: (1, 0), 0: (1, 0)},
        {40: (2, 0), 24: (1, 24), 0: (1, 0)},
        {40: (2, 0), 24: (1, 0), 0: (1, 0)},
    ],
    "Scatter": at_root(3, 24, 96),
    "Scatterv": [{4: (1, 0)}, {40: (1, 40)}, {12: (1, 0)}, {16: (1, 0)}],
    "Reduce": same((40, 2, 80)),
    "Gather": same((24, 1, 24)),
    "Gatherv": own_share(4, 4),
    "Allgather": same((32, 1, 32)),
    "Allgatherv": own_share(4, 4),
    "Alltoall": same((8, 1, 32)),
    "Alltoallv": own_share(24, 16),
    "Alltoallw": own_share(24, 24),
    "Allreduce": same((28, 3, 84)),
    "Reduce_scatter": same((40, 1, 40)),
    "Reduce_scatter_block": same((48, 1, 48)),
    "Scan": same((24, 1, 24)),
    "Exscan": same((44, 1, 44)),
}

IN_PLACE = {
    "Reduce": same((20, 1, 20)),
    "Gather": same((24, 1, 24)),
    "Gatherv": own_share(4, 4),
    "Scatter": at_root(2, 28, 112),
    "Scatterv": [{4: (1, 0)}, {8: (1, 0)}, {40: (1, 40)}, {16: (1, 0)}],
    "Allreduce": same((36, 1, 36)),
    "Allgather": same((32, 1, 32)),
    "Allgatherv": own_share(4, 4),
    "Alltoall": same((8, 1, 32)),
    "Alltoallv": own_share(24, 16),
    "Alltoallw": own_share(24, 16),
    "Reduce_scatter": same((40, 1, 40)),
    "Reduce_scatter_block": same((48, 1, 48)),
    "Scan": same((12, 1, 12)),
    "Exscan": same((44, 1, 44)),
}

EXPECTED = {"collectives": COLLECTIVES, "in_place": IN_PLACE}
# calls around them, whose numbers are another test's concern
AROUND = {
    "MPI_Init",
    "MPI_Finalize",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Start",
    "MPI_Startall",
    "MPI_Request_free",
}

each_program = pytest.mark.parametrize("program", EXPECTED)
each_count = pytest.mark.parametrize("large", ["", pytest.param("_large", marks=pytest.mark.slow)])


def collectives_of(run, measure="call"):
    return {call: sizes for call, sizes in run.table(measure).items() if call not in AROUND}


@each_count
@each_program
def test_every_collective_has_its_count_bytes_and_volume(profile, program, large):
    run = profile(f"{program}{large}", 4)
    assert collectives_of(run) == {
        f"MPI_{name}": sizes for name, sizes in EXPECTED[program].items()
    }


@each_count
@each_program
def test_every_nonblocking_collective_is_posted_and_completed_with_its_bytes(
    profile, program, large
):
    run = profile(f"{program}_nonblocking{large}", 4)
    expected = {f"MPI_I{name.lower()}": sizes for name, sizes in EXPECTED[program].items()}
    assert collectives_of(run) == expected
    assert run.table("completion") == expected


def rounds_of(run):
    """How often each operation was started."""
    prepared = sum(run.counts(call)[0] for call in run.calls(0) if call.endswith("_init"))
    rounds, rest = divmod(run.counts("MPI_Start")[0], prepared)
    assert rounds >= 1 and rest == 0
    return rounds


def each_size(by_rank, change):
    return [{size: change(*moved) for size, moved in by_size.items()} for by_size in by_rank]


@each_count
@each_program
def test_every_persistent_collective_moves_its_bytes_each_time_it_completes(
    profile, mpi, program, large
):
    mpi.require("MPI_Allreduce_init")
    run = profile(f"{program}_persistent{large}", 4)
    rounds = rounds_of(run)
    expected = {f"MPI_{name}_init": sizes for name, sizes in EXPECTED[program].items()}
    assert collectives_of(run) == {
        call: each_size(sizes, lambda count, _: (count, 0)) for call, sizes in expected.items()
    }
    assert run.table("completion") == {
        call: each_size(sizes, lambda count, volume: (rounds * count, rounds * volume))
        for call, sizes in expected.items()
    }
