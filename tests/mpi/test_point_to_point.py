"""Blocking sends, receives and probes: exact counts and bytes of programs/point_to_point.c, also in
large-count form."""

import pytest

PROGRAMS = ["point_to_point", pytest.param("point_to_point_large", marks=pytest.mark.slow)]

# For rank 0 and rank 1: bytes -> (count, volume_bytes).
CALLS = {
    "MPI_Buffer_attach": [{0: (1, 0)}, {}],
    "MPI_Buffer_detach": [{0: (1, 0)}, {}],
    "MPI_Init": [{0: (1, 0)}, {0: (1, 0)}],
    "MPI_Send": [{40: (3, 120), 0: (3, 0), 200: (4, 800), 7: (1, 7)}, {0: (1, 0)}],
    "MPI_Ssend": [{80: (2, 160)}, {}],
    "MPI_Bsend": [{120: (2, 240)}, {}],
    "MPI_Rsend": [{160: (1, 160)}, {}],
    "MPI_Recv": [
        {0: (1, 0)},
        {40: (3, 0), 0: (3, 0), 80: (2, 0), 120: (2, 0), 200: (1, 0), 7: (1, 0)},
    ],
    "MPI_Irecv": [{}, {400: (1, 0)}],
    "MPI_Wait": [{}, {0: (1, 0)}],
    "MPI_Probe": [{}, {200: (2, 0), 7: (1, 0), 0: (1, 0)}],
    "MPI_Iprobe": [{}, {200: (1, 0), 7: (1, 0)}],
    "MPI_Mprobe": [{}, {200: (2, 0), 0: (1, 0)}],
    "MPI_Improbe": [{}, {200: (1, 0)}],
    "MPI_Mrecv": [{}, {200: (3, 0), 0: (1, 0)}],
    "MPI_Sendrecv": [{240: (1, 240), 0: (1, 0)}, {120: (1, 120), 0: (1, 0)}],
    "MPI_Sendrecv_replace": [{256: (1, 256)}, {256: (1, 256)}],
    "MPI_Finalize": [{0: (1, 0)}, {0: (1, 0)}],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_call_has_its_count_bytes_and_volume(profile, program):
    assert profile(program, 2).table() == CALLS


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_nonblocking_receive_completes_with_what_arrived(profile, program):
    assert profile(program, 2).table("completion") == {"MPI_Irecv": [{}, {160: (1, 0)}]}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_probe_that_finds_nothing_is_a_poll(profile, program):
    assert profile(program, 2).table("poll") == {
        "MPI_Iprobe": [{}, {0: (5, 0)}],
        "MPI_Improbe": [{}, {0: (4, 0)}],
    }


def test_messages_are_counted_on_their_communicator_and_waits_on_none(profile):
    run = profile("point_to_point", 2)
    assert {cell.communicator for cell in run.cells(1, "MPI_Recv")} == {"MPI_COMM_WORLD"}
    assert run.query(1, "SELECT DISTINCT communicator FROM cell WHERE call = 'MPI_Wait'") == [(0,)]


def test_a_probe_counts_the_message_whatever_its_status_held_before(profile):
    run = profile("probe_into_garbage", 2)
    for call in ("MPI_Probe", "MPI_Iprobe"):
        assert run.sizes(call) == [{}, {200: (10, 0)}]
