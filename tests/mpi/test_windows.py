"""RMA on two ranks: exact counts, bytes, volumes and peers of programs/windows.c, plain and
large-count."""

import pytest

from .harness import Peer

PROGRAMS = ["windows", pytest.param("windows_large", marks=pytest.mark.slow)]

# For rank 0 and rank 1: bytes -> (count, volume_bytes).
CALLS = {
    "MPI_Put": [
        {40: (3, 120), 0: (1, 0), 8: (2, 16), 4: (2, 8)},
        {40: (3, 120), 0: (1, 0), 4: (2, 8)},
    ],
    "MPI_Get": [{40: (1, 0)}] * 2,
    "MPI_Accumulate": [{80: (1, 80)}, {}],
    "MPI_Get_accumulate": [{12: (1, 12), 20: (1, 20)}] * 2,
    "MPI_Fetch_and_op": [{4: (1, 4)}] * 2,
    "MPI_Compare_and_swap": [{4: (1, 4)}] * 2,
    "MPI_Rput": [{120: (1, 120)}] * 2,
    "MPI_Rget": [{160: (1, 0)}] * 2,
    "MPI_Raccumulate": [{200: (1, 200)}] * 2,
    "MPI_Rget_accumulate": [{240: (1, 240)}] * 2,
}

SYNCHRONIZATION = {
    "MPI_Win_fence": [4, 4],
    "MPI_Win_lock": [4, 4],
    "MPI_Win_unlock": [4, 4],
    "MPI_Win_lock_all": [1, 1],
    "MPI_Win_unlock_all": [1, 1],
    "MPI_Win_flush": [1, 1],
    "MPI_Win_flush_all": [1, 1],
    "MPI_Win_flush_local": [1, 1],
    "MPI_Win_flush_local_all": [1, 1],
    "MPI_Win_sync": [1, 1],
    "MPI_Win_start": [2, 0],
    "MPI_Win_complete": [2, 0],
    "MPI_Win_post": [0, 2],
    "MPI_Win_wait": [0, 1],
    "MPI_Win_test": [0, 1],  # the one that found the end of the epoch
    "MPI_Win_allocate": [1, 1],
    "MPI_Win_create": [1, 1],
    "MPI_Win_create_dynamic": [1, 1],
    "MPI_Win_allocate_shared": [1, 1],
    "MPI_Win_attach": [1, 1],
    "MPI_Win_detach": [1, 1],
    "MPI_Win_set_info": [1, 1],
    "MPI_Win_free": [4, 4],
}


AROUND = {"MPI_Init", "MPI_Finalize", "MPI_Barrier", "MPI_Wait", "MPI_Waitall"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_call_has_its_count_bytes_and_volume(profile, program):
    run = profile(program, 2)
    assert {call: sizes for call, sizes in run.table().items() if call not in AROUND} == {
        **CALLS,
        **{
            call: [{0: (count, 0)} if count else {} for count in counts]
            for call, counts in SYNCHRONIZATION.items()
        },
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_operation_with_a_request_completes_once(profile, program):
    assert profile(program, 2).table("completion") == {
        call: CALLS[call]
        for call in ("MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate")
    }


def test_calls_count_on_the_communicator_that_the_window_was_made_on(profile):
    run = profile("windows", 2)
    assert {cell.communicator for call in CALLS for cell in run.cells(0, call)} == {
        "MPI_COMM_WORLD"
    }
    freed_on = {cell.communicator: cell.count for cell in run.cells(0, "MPI_Win_free")}
    assert freed_on == {"MPI_COMM_WORLD": 3, "MPI_COMM_SELF": 1}


def test_targets_are_peers_and_what_is_got_comes_from_them(profile):
    run = profile("windows", 2)
    assert {peer for peer in run.peers(0) if peer.call in CALLS} == {
        Peer("MPI_Put", "sent", 1, 5, 136),
        Peer("MPI_Put", "sent", 0, 2, 8),
        Peer("MPI_Get", "received", 1, 1, 40),
        Peer("MPI_Accumulate", "sent", 1, 1, 80),
        Peer("MPI_Get_accumulate", "sent", 1, 2, 32),
        Peer("MPI_Fetch_and_op", "sent", 1, 1, 4),
        Peer("MPI_Compare_and_swap", "sent", 1, 1, 4),
        Peer("MPI_Rput", "sent", 1, 1, 120),
        Peer("MPI_Rget", "received", 1, 1, 160),
        Peer("MPI_Raccumulate", "sent", 1, 1, 200),
        Peer("MPI_Rget_accumulate", "sent", 1, 1, 240),
    }


def test_calls_of_an_epoch_have_its_number_and_partner(profile):
    """The groups are the same, whatever their handles."""
    run = profile("windows", 2)
    epochs = "SELECT call, peer, number, partners FROM sample_epoch ORDER BY start_ns"
    assert run.query(0, epochs) == [
        (f"MPI_Win_{call}", 1, number, 1) for number in (1, 2) for call in ("start", "complete")
    ]
    assert run.query(1, epochs) == [
        (f"MPI_Win_{call}", 0, number, 1)
        for number, ends in ((1, "wait"), (2, "test"))
        for call in ("post", ends)
    ]
    (window,) = {
        row
        for rank in (0, 1)
        for row in run.query(rank, "SELECT communicator, object FROM sample_epoch")
    }
    assert window[1] > 0


@pytest.mark.slow
def test_each_window_has_a_count_of_its_own(profile):
    rounds = 16
    run = profile("late_objects", 2, "MPI_Win_fence", "0", "0", str(rounds))
    found = "SELECT object, object_sequence FROM sample WHERE call = :call ORDER BY start_ns"
    first, second = 1, 3  # each was created before a file, on one communicator
    expected = [(window, turn + 1) for turn in range(rounds // 2) for window in (first, second)]
    for rank in range(run.ranks):
        assert run.query(rank, found, call="MPI_Win_fence") == expected
