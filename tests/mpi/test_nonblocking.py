"""Nonblocking point-to-point: exact counts and bytes of programs/nonblocking.c when posted and when
completed."""

import json

import pytest

from .harness import Peer
from .reporter import text

PROGRAMS = ["nonblocking", pytest.param("nonblocking_large", marks=pytest.mark.slow)]

# For rank 0 and rank 1: bytes -> (count, volume_bytes).
POSTED = {
    "MPI_Isend": [{40: (2, 80), 200: (1, 200), 0: (2, 0)}, {0: (2, 0)}],
    "MPI_Issend": [{80: (2, 160)}, {}],
    "MPI_Ibsend": [{120: (2, 240)}, {}],
    "MPI_Irsend": [{160: (1, 160)}, {}],
    "MPI_Irecv": [{36: (1, 0), 32: (1, 0)}, {400: (7, 0), 36: (1, 0), 32: (1, 0)}],
    "MPI_Imrecv": [{}, {400: (1, 0)}],
    "MPI_Mprobe": [{}, {200: (1, 0)}],
    "MPI_Send": [{}, {0: (1, 0)}],
    "MPI_Recv": [{0: (1, 0)}, {}],
    "MPI_Wait": [{0: (1, 0)}, {0: (1, 0)}],
}

COMPLETED = {
    "MPI_Isend": POSTED["MPI_Isend"],
    "MPI_Issend": POSTED["MPI_Issend"],
    "MPI_Ibsend": POSTED["MPI_Ibsend"],
    "MPI_Irsend": POSTED["MPI_Irsend"],
    "MPI_Irecv": [{0: (2, 0)}, {40: (2, 0), 80: (2, 0), 120: (2, 0), 160: (1, 0), 0: (2, 0)}],
    "MPI_Imrecv": [{}, {200: (1, 0)}],
}


EXCHANGED = {"MPI_Isendrecv": [{240: (1, 240)}] * 2, "MPI_Isendrecv_replace": [{256: (1, 256)}] * 2}
AROUND = {"MPI_Init", "MPI_Finalize", "MPI_Waitall", "MPI_Buffer_attach", "MPI_Buffer_detach"}


def exchanged_by(mpi):
    """MPI 4's exchanges, where this library has them."""
    return EXCHANGED if mpi.has("MPI_Isendrecv") else {}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_call_has_its_count_bytes_and_volume(profile, program, mpi):
    made = profile(program, 2).table()
    assert {call: sizes for call, sizes in made.items() if call not in AROUND} == (
        POSTED | exchanged_by(mpi)
    )
    assert made.keys() >= AROUND


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_operation_completes_once_with_what_it_moved(profile, program, mpi):
    assert profile(program, 2).table("completion") == COMPLETED | exchanged_by(mpi)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_exchanges_of_mpi_4_have_the_peers_that_mpi_tells_of(profile, program, mpi):
    mpi.require("MPI_Isendrecv")
    run = profile(program, 2)
    for rank in range(2):
        peers = {peer for peer in run.peers(rank) if peer.call in EXCHANGED}
        sent, received = (
            {
                Peer(call, way, 1 - rank, 1, size)
                for call, sizes in EXCHANGED.items()
                for size in sizes[rank]
            }
            for way in ("sent", "received")
        )
        # the status of MPICH 4.0.2 says nothing
        assert peers == (sent if mpi.abi == "MPICH" else sent | received)


def test_thousands_in_flight_with_equal_handles_complete_each_with_its_own_size(profile):
    run = profile("many_requests", 2)
    assert run.sizes("MPI_Isend") == [
        {8: (2000, 16000), 16: (2000, 32000), 0: (1000, 0)},
        {0: (1000, 0)},
    ]
    assert run.sizes("MPI_Isend", "completion") == run.sizes("MPI_Isend")
    assert run.sizes("MPI_Irecv", "completion") == [{}, {8: (2000, 0), 16: (2000, 0)}]
    assert run.counts("MPI_Waitany") == [100, 100]
    assert run.counts("MPI_Wait") == [1000, 1000]


def test_no_request_is_left_untracked(profile):
    run = profile("many_requests", 2)
    assert run.rank_row(0)["untracked_requests"] == 0
    assert run.rank_row(1)["untracked_requests"] == 0


def test_an_operation_is_blocked_no_longer_than_it_takes(profile):
    run = profile("overlap", 2)
    for cell in run.cells(0, measure="completion") + run.cells(1, measure="completion"):
        assert 0 <= cell.blocked_ns <= cell.total_ns


def test_operations_that_share_a_handle_are_not_blocked_for_each_other(profile):
    run = profile("equal_handles", 2)
    assert run.sizes("MPI_Isend", "completion") == [{4: (1, 4), 8: (49, 392)}, {}]
    assert run.sizes("MPI_Testall", "poll") == [{0: (1000, 0)}, {}]
    for cell in run.cells(0, "MPI_Isend", "completion"):
        assert cell.blocked_ns <= cell.total_ns


def test_an_operation_takes_as_long_as_the_job_is_blocked_on_it_and_computes_meanwhile(profile):
    run = profile("overlap", 2)
    (reduction,) = (
        cell for cell in run.cells(0, "MPI_Iallreduce", "completion") if cell.bytes == 80000
    )
    (computed_ns,) = (
        int(line.split()[2])
        for line in run.outcome.stdout.splitlines()
        if line.startswith("computed 0 ")
    )
    assert reduction.count == 20
    # The program reads its clock after the call that starts the operation and before the one that
    # completes it, on a busy machine too.
    assert reduction.total_ns - reduction.blocked_ns >= 0.999 * computed_ns


def test_operations_that_overlap_complete_in_either_order(profile):
    run = profile("overlap", 2)
    assert run.sizes("MPI_Iallreduce", "completion") == [{80000: (20, 1600000), 800: (1, 800)}] * 2
    assert run.sizes("MPI_Ibcast", "completion") == [{400: (1, 400)}, {400: (1, 0)}]


def test_one_thread_completes_what_another_started(profile):
    run = profile("completed_by_another_thread", 2)
    assert run.sizes("MPI_Isend", "completion") == [{4: (50, 200)}, {}]
    assert run.sizes("MPI_Irecv", "completion") == [{}, {4: (50, 0)}]


@pytest.mark.parametrize("size", ["64", "4194304"], ids=["eager", "rendezvous"])
def test_the_call_that_starts_an_operation_is_not_overlapped(profile, size):
    """Some libraries send a large message within Isend, and Wait finds it complete."""
    run = profile("no_overlap", 2, size)
    for sent, calls in (
        ("MPI_Isend", ("MPI_Isend", "MPI_Wait")),
        ("MPI_Send_init", ("MPI_Start", "MPI_Waitall")),
    ):
        (completion,) = run.cells(0, sent, "completion")
        inside_ns = sum(cell.total_ns for call in calls for cell in run.cells(0, call))
        # each is rounded to ns
        assert completion.blocked_ns == pytest.approx(inside_ns, abs=2 * completion.count)
        (row,) = (
            row for row in json.loads(text("calls", "--json", run.folder)) if row["call"] == sent
        )
        assert row["overlap"] == pytest.approx(1 - inside_ns / completion.total_ns, abs=1e-3)
