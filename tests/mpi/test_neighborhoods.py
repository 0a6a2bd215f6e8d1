"""Neighborhood collectives on four ranks: exact counts, bytes and volumes of
programs/neighborhoods.c in its six forms."""

import pytest

# For each of the three communicators: bytes -> (count, volume_bytes), on every rank.
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


def on(run, rank, call, communicator, measure="call"):
    cells = run.cells(rank, call, measure)
    return {
        cell.bytes: (cell.count, cell.volume_bytes) for cell in cells
        if cell.communicator == communicator
    }


def completed(by_size, rounds):
    return {size: (count * rounds, volume * rounds) for size, (count, volume) in by_size.items()}


def expectations(name):
    """(rank, communicator, sizes) for all that the program did with this collective."""
    for rank in range(4):
        for communicator, by_size in CALLS[name].items():
            yield rank, communicator, by_size
        if name in STAR:
            yield rank, "star", STAR[name][rank]


@pytest.mark.parametrize("form", ["", "_large"])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_has_its_count_bytes_and_volume(profile, form, name):
    run = profile(f"neighborhoods{form}", 4)
    for rank, communicator, by_size in expectations(name):
        assert on(run, rank, f"MPI_Neighbor_{name}", communicator) == by_size, (rank, communicator)


@pytest.mark.parametrize("form", ["_nonblocking", "_nonblocking_large"])
@pytest.mark.parametrize("name", CALLS)
def test_every_nonblocking_call_is_posted_and_completed_with_its_bytes(profile, form, name):
    run = profile(f"neighborhoods{form}", 4)
    for rank, communicator, by_size in expectations(name):
        assert on(run, rank, f"MPI_Ineighbor_{name}", communicator) == by_size, (rank, communicator)
        assert on(run, rank, f"MPI_Ineighbor_{name}", communicator, "completion") == by_size, (
            rank, communicator,
        )


@pytest.mark.parametrize("form", ["_persistent", "_persistent_large"])
@pytest.mark.parametrize("name", CALLS)
def test_every_persistent_call_moves_its_bytes_each_time_it_completes(profile, mpi, form, name):
    mpi.require("MPI_Neighbor_allgather_init")
    run = profile(f"neighborhoods{form}", 4)
    rounds = run.counts("MPI_Start")[0] // sum(
        run.counts(f"MPI_Neighbor_{other}_init")[0] for other in CALLS
    )
    for rank, communicator, by_size in expectations(name):
        call = f"MPI_Neighbor_{name}_init"
        assert on(run, rank, call, communicator) == {
            size: (count, 0) for size, (count, _) in by_size.items()
        }
        assert on(run, rank, call, communicator, "completion") == completed(by_size, rounds)


def test_nothing_is_counted_that_the_program_did_not_call(profile):
    run = profile("neighborhoods", 4)
    made = {f"MPI_Neighbor_{name}" for name in CALLS} | {
        "MPI_Init", "MPI_Finalize", "MPI_Comm_set_name", "MPI_Comm_free",
    }
    made |= {"MPI_Cart_create", "MPI_Comm_dup", "MPI_Dist_graph_create_adjacent"}
    assert [run.calls(rank) for rank in range(4)] == [made] * 4
