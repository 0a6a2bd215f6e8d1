"""Fortran reaches MPI's C functions by PMPI_ names under Open MPI, by MPI_ names under MPICH, and
by both through mpi_f08: each call is counted once. The three programs make the same calls."""

import pytest

PROGRAMS = ["fortran_mpif", "fortran_use_mpi", "fortran_f08"]

# For rank 0 and rank 1: bytes -> (count, volume_bytes).
CALLS = {
    "MPI_Init": [{0: (1, 0)}] * 2,
    "MPI_Barrier": [{0: (1, 0)}] * 2,
    "MPI_Send": [{40: (3, 120)}, {}],
    "MPI_Recv": [{}, {40: (3, 0)}],
    "MPI_Sendrecv": [{48: (1, 48)}] * 2,
    "MPI_Isend": [{80: (1, 80), 84: (1, 84)}] * 2,
    "MPI_Irecv": [{400: (2, 0)}] * 2,
    "MPI_Waitall": [{0: (2, 0)}] * 2,
    "MPI_Bcast": [{80: (1, 80)}, {80: (1, 0)}],
    "MPI_Allreduce": [{40: (1, 40)}] * 2,
    "MPI_Gather": [{16: (1, 16)}] * 2,
    "MPI_Comm_split": [{0: (1, 0)}] * 2,
    "MPI_Reduce": [{24: (1, 24)}] * 2,
    "MPI_Comm_free": [{0: (1, 0)}] * 2,
    "MPI_Finalize": [{0: (1, 0)}] * 2,
}


@pytest.fixture(autouse=True)
def fortran_is_there(mpi, program):
    if program != "completions_c":
        mpi.require_fortran(program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_call_has_its_count_bytes_and_volume(profile, program):
    assert profile(program, 2).table() == CALLS


@pytest.mark.parametrize("program", PROGRAMS)
def test_nonblocking_operations_complete_with_what_arrived(profile, program):
    assert profile(program, 2).table("completion") == {
        "MPI_Irecv": [{80: (1, 0), 84: (1, 0)}] * 2,
        "MPI_Isend": [{80: (1, 80), 84: (1, 84)}] * 2,
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_split_communicator_is_known_by_its_members(profile, program):
    run = profile(program, 2)
    halves = [run.communicator(rank, "MPI_Comm_split") for rank in range(2)]
    assert [half.world_ranks for half in halves] == [[1, 0], [1, 0]]
    assert halves[0].identity == halves[1].identity


LANGUAGES = ["completions_c", "completions_mpif", "completions_use_mpi", "completions_f08"]
MADE = {
    "MPI_Startall": 10,
    "MPI_Waitall": 40,
    "MPI_Waitany": 40,
    "MPI_Waitsome": 40,
    "MPI_Testall": 30,
    "MPI_Testany": 30,
    "MPI_Testsome": 30,
    "MPI_Wait": 10,
    "MPI_Test": 10,
    "MPI_Request_get_status": 20,
    "MPI_Ibarrier": 30,
    "MPI_Send": 10,
    "MPI_Recv": 10,
    "MPI_Bcast": 10,
    "MPI_Iprobe": 10,
    "MPI_Init": 1,
    "MPI_Finalize": 1,
}


@pytest.mark.parametrize("program", LANGUAGES)
def test_calls_that_do_nothing_count_equally_in_all_languages(profile, program):
    counted = "SELECT call, sum(count) FROM cell WHERE measure IN ('call', 'poll') GROUP BY call"
    assert dict(profile(program, 1).query(0, counted)) == MADE
