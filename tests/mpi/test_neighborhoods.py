"""Neighborhood collectives on four ranks: exact counts, bytes and volumes of
programs/neighborhoods.c in its six forms."""

import pytest

# For each of the communicators: bytes -> (count, volume_bytes), on every rank.
CALLS = {
    "allgather": {"grid": {20: (1, 20)}},
    "allgatherv": {"grid": {12: (1, 12)}},
    "alltoall": {"grid": {8: (1, 32)}, "line": {28: (1, 56)}},
    "alltoallv": {"grid": {40: (1, 40)}},
    "alltoallw": {"grid": {48: (1, 48)}},
}
# Over the star only rank 0 sends.
STAR = {
    "alltoall": [{12: (1, 36)}, {0: (1, 0)}, {0: (1, 0)}, {0: (1, 0)}],
    "alltoallv": [{24: (1, 24)}, {0: (1, 0)}, {0: (1, 0)}, {0: (1, 0)}],
}


AROUND = {
    "MPI_Init",
    "MPI_Finalize",
    "MPI_Comm_set_name",
    "MPI_Comm_free",
    "MPI_Cart_create",
    "MPI_Comm_dup",
    "MPI_Dist_graph_create_adjacent",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Start",
    "MPI_Startall",
    "MPI_Request_free",
}
each_count = pytest.mark.parametrize("large", ["", pytest.param("_large", marks=pytest.mark.slow)])


def expected(form, change=lambda *moved: moved):
    """For each rank: {(call, communicator, bytes): (count, volume_bytes)}."""
    return [
        {
            (f"MPI_{form.format(name)}", where, size): change(*moved)
            for name in CALLS
            for where, sizes in [*CALLS[name].items(), ("star", STAR.get(name, [{}] * 4)[rank])]
            for size, moved in sizes.items()
        }
        for rank in range(4)
    ]


def made(run, measure="call"):
    return [
        {
            (cell.call, cell.communicator, cell.bytes): (cell.count, cell.volume_bytes)
            for cell in run.cells(rank, measure=measure)
            if cell.call not in AROUND
        }
        for rank in range(4)
    ]


@each_count
def test_every_call_has_its_count_bytes_and_volume(profile, large):
    assert made(profile(f"neighborhoods{large}", 4)) == expected("Neighbor_{}")


@each_count
def test_every_nonblocking_call_is_posted_and_completed_with_its_bytes(profile, large):
    run = profile(f"neighborhoods_nonblocking{large}", 4)
    assert made(run) == made(run, "completion") == expected("Ineighbor_{}")


@each_count
def test_every_persistent_call_moves_its_bytes_each_time_it_completes(profile, mpi, large):
    mpi.require("MPI_Neighbor_allgather_init")
    run = profile(f"neighborhoods_persistent{large}", 4)
    rounds = run.counts("MPI_Start")[0] // sum(
        run.counts(f"MPI_Neighbor_{name}_init")[0] for name in CALLS
    )
    assert rounds >= 1
    form = "Neighbor_{}_init"
    assert made(run) == expected(form, lambda count, _: (count, 0))
    assert made(run, "completion") == expected(
        form, lambda count, volume: (rounds * count, rounds * volume)
    )


SOURCES = """
SELECT value FROM fact JOIN communicator ON key = 'sources.' || identity
WHERE name = :name AND communicator.world_rank = fact.world_rank
"""


def test_each_rank_knows_from_whom_it_receives(profile):
    """A rank that is both neighbors of a dimension is listed twice: 1,1-2,2."""
    run = profile("neighborhoods", 4)
    found = {
        name: [{*run.query(rank, SOURCES, name=name)[0][0]} - {*",-"} for rank in range(4)]
        for name in ("grid", "line", "star")
    }
    assert found == {
        "grid": [{"2", "1"}, {"3", "0"}, {"0", "3"}, {"1", "2"}],
        "line": [{"1"}, {"0", "2"}, {"1", "3"}, {"2"}],
        "star": [set(), {"0"}, {"0"}, {"0"}],
    }
