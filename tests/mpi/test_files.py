"""MPI-IO on two ranks: exact counts, bytes and volumes of programs/files.c, plain and
large-count."""

import pytest

PROGRAMS = ["files", pytest.param("files_large", marks=pytest.mark.slow)]


def on_both(size, *, moves=True):
    return [{4 * size: (1, 4 * size if moves else 0)}] * 2


# For rank 0 and rank 1: bytes -> (count, volume_bytes).
CALLS = {
    "write": on_both(1),
    "write_all": on_both(2),
    "write_at": on_both(3),
    "write_at_all": on_both(40),
    "write_shared": on_both(5),
    "write_ordered": on_both(6),
    "read": on_both(1, moves=False),
    "read_all": on_both(2, moves=False),
    # the second asks for 308 bytes where the file has 40 left
    "read_at": [{12: (1, 0), 40: (1, 0)}] * 2,
    "read_at_all": on_both(40, moves=False),
    "read_shared": on_both(5, moves=False),
    "read_ordered": on_both(6, moves=False),
    "write_all_begin": on_both(21),
    "write_at_all_begin": on_both(22),
    "write_ordered_begin": on_both(23),
    "read_all_begin": on_both(21, moves=False),
    "read_at_all_begin": on_both(22, moves=False),
    "read_ordered_begin": on_both(23, moves=False),
}

NONBLOCKING = {
    "iwrite": on_both(11),
    "iwrite_all": on_both(12),
    "iwrite_at": on_both(13),
    "iwrite_at_all": on_both(14),
    "iwrite_shared": on_both(15),
    "iread": on_both(11, moves=False),
    "iread_all": on_both(12, moves=False),
    "iread_at": on_both(13, moves=False),
    "iread_at_all": on_both(14, moves=False),
    "iread_shared": on_both(15, moves=False),
}

WITHOUT_BYTES = {
    "open": [2, 2],  # one of them in vain
    "close": [1, 1],
    "delete": [1, 0],
    "preallocate": [1, 1],
    "set_atomicity": [1, 1],
    "seek_shared": [4, 4],
    "sync": [1, 1],
    "set_size": [1, 1],
    "get_size": [1, 1],
    "set_view": [1, 1],
    "set_info": [1, 1],
    **{
        f"{call}_end": [1, 1]
        for call in (
            "write_all",
            "write_at_all",
            "write_ordered",
            "read_all",
            "read_at_all",
            "read_ordered",
        )
    },
}


@pytest.fixture
def run(profile, request, tmp_path_factory):
    return profile(request.param, 2, str(tmp_path_factory.getbasetemp()))


def named(calls):
    return {f"MPI_File_{call}": sizes for call, sizes in calls.items()}


@pytest.mark.parametrize("run", PROGRAMS, indirect=True)
def test_every_access_has_its_count_bytes_and_volume(run):
    around = {"MPI_Init", "MPI_Finalize", "MPI_Barrier", "MPI_Wait", "MPI_Waitall"}
    counts = {
        call: [{0: (count, 0)} if count else {} for count in by_rank]
        for call, by_rank in WITHOUT_BYTES.items()
    }
    assert {call: sizes for call, sizes in run.table().items() if call not in around} == named(
        CALLS | NONBLOCKING | counts
    )


@pytest.mark.parametrize("run", PROGRAMS, indirect=True)
def test_every_nonblocking_access_completes_once(run):
    assert run.table("completion") == named(NONBLOCKING)


@pytest.mark.parametrize("run", PROGRAMS, indirect=True)
def test_accesses_count_on_the_communicator_that_the_file_was_opened_on(run):
    assert {cell.communicator for call in CALLS for cell in run.cells(0, f"MPI_File_{call}")} == {
        "MPI_COMM_WORLD"
    }
    opened_on = {cell.communicator: cell.count for cell in run.cells(0, "MPI_File_open")}
    assert opened_on.pop("MPI_COMM_WORLD") == 1
    assert {cell.communicator for cell in run.cells(0, "MPI_File_delete")} == {""}


@pytest.mark.parametrize("run", PROGRAMS, indirect=True)
def test_files_have_no_peers(run):
    assert run.peers(0) == set()
