"""Many threads at once (programs/many_threads.calls), and many one after the other
(programs/passing_threads.c): every call counts once."""

import pytest

from .harness import Peer


@pytest.mark.slow
def test_calls_of_sixty_four_threads_add_up(profile, plain):
    run = profile("many_threads", 2)
    assert run.outcome.exit_status == plain("many_threads", 2).exit_status == 0
    assert run.sizes("MPI_Allreduce") == [{4: (64 * 20, 64 * 20 * 4)}] * 2
    assert run.sizes("MPI_Sendrecv") == [{4: (64 * 20, 64 * 20 * 4)}] * 2
    by_communicator = (
        "SELECT SUM(count) FROM cell WHERE call = 'MPI_Allreduce' GROUP BY communicator"
    )
    assert run.query(1, by_communicator) == [(20,)] * 64


@pytest.mark.slow
def test_requests_that_another_thread_completes_are_followed(profile):
    run = profile("many_threads", 2)
    assert run.sizes("MPI_Irecv", "completion") == [{4: (640, 0)}] * 2
    assert run.sizes("MPI_Isend", "completion") == [{4: (640, 2560)}] * 2
    assert Peer("MPI_Irecv", "received", 1, 640, 2560) in run.peers(0)
    assert (run.rank_row(0)["untracked_requests"], run.rank_row(0)["dropped_calls"]) == (0, 0)


def test_calls_of_five_thousand_passing_threads_add_up(profile, plain):
    run = profile("passing_threads", 1)
    assert run.outcome.exit_status == plain("passing_threads", 1).exit_status == 0
    assert run.sizes("MPI_Allreduce") == [{4: (20000, 80000)}]
    assert run.counts("MPI_Barrier") == [5000]
    assert run.rank_row(0)["dropped_calls"] == 0


def test_passing_threads_share_the_room_of_those_that_are_there_at_one_time(profile):
    run = profile("passing_threads", 1)
    ((threads,),) = run.query(0, "SELECT COUNT(*) FROM thread")
    assert 2 <= threads <= 1 + 8
