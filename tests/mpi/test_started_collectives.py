"""Rows of sample_start with equal communicator, operation and number are one persistent collective
by the program's own log, though each rank starts them in its own order."""

import pytest

ROUNDS, OPERATIONS = 60, 6
COUNTED = ROUNDS - (ROUNDS // 2 - ROUNDS // 3)
KEY = """
    SELECT identity, operation, number, call, coalesce(root, -1), start_monotonic_ns + start_ns
    FROM sample_start JOIN communicator USING (world_rank, communicator) JOIN rank
        USING (world_rank)"""
COMPLETED = """
    SELECT count(*) FROM sample_start
    WHERE completed_ns IN (SELECT end_ns FROM sample WHERE call IN ('MPI_Wait', 'MPI_Waitall')
        AND start_ns >= sample_start.end_ns)"""


@pytest.fixture
def run(profile, mpi, tmp_path):
    if not mpi.has("MPI_Allreduce_init"):
        pytest.skip("this MPI has no persistent collectives")
    env = {"TRUTH": str(tmp_path), "COMMPROF_CLOCK": "monotonic"}
    return profile("started_collectives", 3, str(ROUNDS), env=env)


def started(run, folder, rank):
    """By communicator, operation and number: what the program has started then, and how it is
    recorded."""
    lines = (folder / f"truth-{rank}").read_text().splitlines()
    truth = [tuple(map(int, line.split())) for line in lines]
    found = {}
    for identity, operation, number, call, root, start_ns in run.query(rank, KEY):
        [one] = [
            (which, serial) for before, after, which, serial in truth if before <= start_ns <= after
        ]
        assert (identity, operation, number) not in found
        found[(identity, operation, number)] = (*one, call, root)
    return found


def test_equal_operation_and_number_are_one_collective_that_completes_with_its_wait(run, tmp_path):
    first, *others = (started(run, tmp_path, rank) for rank in range(run.ranks))
    assert len(first) == COUNTED * OPERATIONS
    assert others == [first] * len(others)
    assert {what[2:] for what in first.values()} == {
        ("MPI_Allreduce_init", -1),
        ("MPI_Bcast_init", 1),
        ("MPI_Barrier_init", -1),
    }
    for rank in range(run.ranks):
        assert run.query(rank, COMPLETED) == [(COUNTED * OPERATIONS,)]
