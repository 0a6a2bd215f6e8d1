"""MPI-IO on two ranks: exact counts, bytes and volumes of programs/files.c, plain and
large-count."""

import pytest

PROGRAMS = ["files", "files_large"]


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
            "write_all", "write_at_all", "write_ordered", "read_all", "read_at_all", "read_ordered",
        )
    },
}


@pytest.fixture
def run(profile, request, tmp_path_factory):
    return profile(request.param, 2, str(tmp_path_factory.getbasetemp()))


@pytest.mark.parametrize("run", PROGRAMS, indirect=True)
@pytest.mark.parametrize("call", CALLS | NONBLOCKING)
def test_every_access_has_its_count_bytes_and_volume(run, call):
    assert run.sizes(f"MPI_File_{call}") == (CALLS | NONBLOCKING)[call]


@pytest.mark.parametrize("run", PROGRAMS, indirect=True)
@pytest.mark.parametrize("call", NONBLOCKING)
def test_every_nonblocking_access_completes_once(run, call):
    assert run.sizes(f"MPI_File_{call}", "completion") == NONBLOCKING[call]


@pytest.mark.parametrize("run", PROGRAMS, indirect=True)
@pytest.mark.parametrize("call", WITHOUT_BYTES)
def test_every_other_call_is_counted_without_bytes(run, call):
    assert run.counts(f"MPI_File_{call}") == WITHOUT_BYTES[call]
    assert {size for sizes in run.sizes(f"MPI_File_{call}") for size in sizes} == {0}


@pytest.mark.parametrize("run", PROGRAMS, indirect=True)
def test_nothing_is_counted_that_the_program_did_not_call(run):
    around = {"MPI_Init", "MPI_Finalize", "MPI_Barrier", "MPI_Wait", "MPI_Waitall"}
    made = {f"MPI_File_{call}" for call in CALLS | NONBLOCKING | WITHOUT_BYTES}
    assert [run.calls(0), run.calls(1)] == [made | around, (made - {"MPI_File_delete"}) | around]


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
