"""Persistent requests: exact counts and bytes of programs/persistent.c when set up, started and
completed."""

import pytest

from .harness import Peer
from .reporter import rows

PROGRAMS = ["persistent", pytest.param("persistent_large", marks=pytest.mark.slow)]

# For rank 0 and rank 1: bytes -> (count, volume_bytes). Setting up moves nothing, so it has no
# volume.
CALLS = {
    "MPI_Send_init": [{40: (1, 0), 280: (1, 0), 0: (1, 0)}, {0: (1, 0)}],
    "MPI_Ssend_init": [{80: (1, 0)}, {}],
    "MPI_Bsend_init": [{120: (1, 0)}, {}],
    "MPI_Rsend_init": [{160: (1, 0)}, {}],
    "MPI_Recv_init": [{360: (1, 0)}, {400: (4, 0), 360: (1, 0)}],
    "MPI_Start": [{0: (14, 0)}, {0: (2, 0)}],
    "MPI_Startall": [{}, {0: (3, 0)}],
    "MPI_Request_free": [{0: (7, 0)}, {0: (6, 0)}],
    "MPI_Cancel": [{0: (2, 0)}, {0: (2, 0)}],
    "MPI_Irecv": [{400: (1, 0)}, {400: (1, 0)}],
    "MPI_Wait": [{0: (7, 0)}, {0: (3, 0)}],
    "MPI_Waitall": [{0: (4, 0)}, {0: (3, 0)}],
    "MPI_Send": [{}, {0: (3, 0)}],
    "MPI_Recv": [{0: (3, 0)}, {}],
    "MPI_Buffer_attach": [{0: (1, 0)}, {}],
    "MPI_Buffer_detach": [{0: (1, 0)}, {}],
}

COMPLETED = {
    "MPI_Send_init": [{40: (3, 120), 0: (1, 0)}, {0: (1, 0)}],
    "MPI_Ssend_init": [{80: (3, 240)}, {}],
    "MPI_Bsend_init": [{120: (3, 360)}, {}],
    "MPI_Rsend_init": [{160: (3, 480)}, {}],
    "MPI_Recv_init": [{0: (1, 0)}, {40: (3, 0), 80: (3, 0), 120: (3, 0), 160: (3, 0), 0: (1, 0)}],
    "MPI_Irecv": [{0: (1, 0)}, {0: (1, 0)}],  # cancelled: nothing arrived
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_call_has_its_count_bytes_and_volume(profile, program):
    around = dict.fromkeys(("MPI_Init", "MPI_Finalize"), [{0: (1, 0)}] * 2)
    assert profile(program, 2).table() == CALLS | around


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_start_completes_once_with_what_it_moved(profile, program):
    assert profile(program, 2).table("completion") == COMPLETED


def test_sums_over_calls_have_what_the_starts_moved(profile):
    run = profile("persistent", 2)
    volumes = {row["call"]: row["volume_bytes"] for row in rows("calls", run.folder)}
    assert {call: volume for call, volume in volumes.items() if volume} == {
        "MPI_Send_init": 120,
        "MPI_Ssend_init": 240,
        "MPI_Bsend_init": 360,
        "MPI_Rsend_init": 480,
    }
    of_ranks = rows("ranks", "--per-rank", run.folder)
    assert [row["volume_bytes"] for row in of_ranks] == [1200, 0]


def test_starts_belong_to_no_communicator_and_completions_to_the_requests(profile):
    run = profile("persistent", 2)
    assert {cell.communicator for cell in run.cells(0, "MPI_Start")} == {""}
    assert {cell.communicator for cell in run.cells(0, "MPI_Send_init", "completion")} == {
        "MPI_COMM_WORLD"
    }


# Partitioned

PARTITIONED = {
    "MPI_Psend_init": [{80: (1, 0)}, {}],
    "MPI_Precv_init": [{}, {80: (1, 0)}],
    "MPI_Pready": [{0: (3, 0)}, {}],
    "MPI_Pready_range": [{0: (3, 0)}, {}],
    "MPI_Pready_list": [{0: (3, 0)}, {}],
    "MPI_Parrived": [{}, {0: (3, 0)}],  # those that found the partition
    "MPI_Start": [{0: (3, 0)}] * 2,
}


def test_every_partitioned_call_has_its_count_and_bytes(profile, mpi):
    mpi.require("MPI_Psend_init")
    made = profile("partitioned", 2).table()
    assert {call: made.get(call) for call in PARTITIONED} == PARTITIONED


def test_a_partitioned_message_counts_whole_when_it_completes(profile, mpi):
    mpi.require("MPI_Psend_init")
    run = profile("partitioned", 2)
    assert run.sizes("MPI_Psend_init", "completion") == [{80: (3, 240)}, {}]
    assert run.sizes("MPI_Precv_init", "completion") == [{}, {80: (3, 0)}]
    assert run.peers(0) == {Peer("MPI_Psend_init", "sent", 1, 3, 240)}
    assert run.peers(1) == {Peer("MPI_Precv_init", "received", 0, 3, 240)}
    sent = {row["call"]: row["volume_bytes"] for row in rows("calls", run.folder)}
    assert sent["MPI_Psend_init"] == 240
