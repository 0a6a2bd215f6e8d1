"""Fortran reaches MPI's C functions by PMPI_ names under Open MPI, by MPI_ names under MPICH, and
by both through mpi_f08: each call is counted once. The three programs make the same calls."""

import re

import pytest

from .libraries import REPOSITORY

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
    mpi.require_fortran(program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_call_has_its_count_bytes_and_volume(profile, program):
    assert profile(program, 2).table() == CALLS


@pytest.mark.parametrize("program", PROGRAMS)
def test_nonblocking_operations_complete_with_what_arrived(profile, program):
    assert profile(program, 2).table("completion") == {
        "MPI_Irecv": [{80: (1, 0), 84: (1, 0)}] * 2, "MPI_Isend": [{80: (1, 80), 84: (1, 84)}] * 2,
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_split_communicator_is_known_by_its_members(profile, program):
    run = profile(program, 2)
    halves = [run.communicator(rank, "MPI_Comm_split") for rank in range(2)]
    assert [half.world_ranks for half in halves] == [[1, 0], [1, 0]]
    assert halves[0].identity == halves[1].identity


def said_of_empty_arrays(library: str) -> dict[str, int]:
    """How often a call of FUNCTIONS.md's table is counted, by the page, if it is made ten times."""
    page = (REPOSITORY / "docs/FUNCTIONS.md").read_text()
    rows = re.findall(r"\| Fortran's `(MPI_\w+)` \| ([\w ]+) \| ([\w ]+) \|", page)
    return {
        call: 10 * ((open_mpi if library == "openmpi" else mpich) == "counted")
        for call, open_mpi, mpich in rows
    }


@pytest.mark.parametrize("program", ["fortran_empty_arrays", "fortran_empty_arrays_f08"])
def test_the_page_says_which_calls_with_no_requests_a_library_does_not_show(mpi, profile, program):
    said = said_of_empty_arrays(mpi.family)
    run = profile(program, 1)
    assert {call: sum(cell.count for cell in run.cells(0, call)) for call in said} == said
    assert len(said) == 7 and run.calls(0) == {call for call in said if said[call]} | {
        "MPI_Init", "MPI_Finalize",
    }
