"""Python: MPI is loaded by a module, out of sight of the program's own symbols
(programs/mpi4py_calls.py)."""

import pytest


@pytest.fixture
def run(profile, mpi):
    if not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")
    return profile("mpi4py_calls", 2)


def test_messages_of_buffers_are_counted_with_their_bytes(run):
    assert run.sizes("MPI_Isend") == [{80: (1, 80)}] * 2
    assert run.sizes("MPI_Irecv", "completion") == [{80: (1, 0)}] * 2
    assert {cell.bytes: cell.count for cell in run.cells(1, "MPI_Recv")} == {40: 3}


def test_collectives_are_counted_with_their_bytes(run):
    assert run.sizes("MPI_Bcast") == [{120: (1, 120)}, {120: (1, 0)}]
    assert run.sizes("MPI_Allreduce") == [{20: (4, 80)}] * 2


def test_pickled_objects_are_sent_by_one_send_and_matched_by_a_probe(run):
    assert run.counts("MPI_Send") == [4, 0]
    assert run.counts("MPI_Mprobe") == [0, 1]
    assert run.counts("MPI_Mrecv") == [0, 1]
    (pickled,) = run.cells(1, "MPI_Mrecv")
    assert pickled.bytes in run.sizes("MPI_Send")[0]


def test_a_communicator_named_in_python_keeps_its_name(run):
    assert run.communicator(0, "backwards").world_ranks == [1, 0]
    assert run.communicator(0, "backwards").is_freed == 1


def test_init_and_finalize_are_the_module_s(run):
    assert run.counts("MPI_Init_thread") == [1, 1]
    assert run.counts("MPI_Finalize") == [1, 1]
    assert run.rank_row(0)["thread_level"] == 3
