"""Generalized requests, cancelled ones, and such as are freed while they are active
(programs/generalized.calls)."""

from .harness import Peer


def test_statuses_of_generalized_and_cancelled_requests_are_mpi_s(profile, plain):
    run = profile("generalized", 1)
    assert run.outcome.stdout == plain("generalized", 1).stdout
    assert run.outcome.stdout.count("cancelled 1") == 4
    assert run.outcome.stdout.count("count 3 cancelled 0") == 3


def test_what_a_generalized_request_s_callback_calls_counts(profile):
    run = profile("generalized", 1)
    assert run.counts("MPI_Barrier")[0] > 0
    assert run.rank_row(0)["interrupted_calls"] == 0


def test_a_cancelled_receive_completes_without_bytes_and_without_a_source(profile):
    run = profile("generalized", 1)
    assert run.sizes("MPI_Irecv", "completion") == [{0: (4, 0), 4: (1, 0)}]
    assert run.sizes("MPI_Recv_init", "completion") == [{0: (1, 0), 4: (1, 0)}]
    assert Peer("MPI_Irecv", "received", 0, 1, 4) in run.peers(0)
    assert Peer("MPI_Recv_init", "received", 0, 1, 4) in run.peers(0)


def test_requests_that_are_freed_are_counted_when_posted_and_not_followed(profile):
    run = profile("generalized", 1)
    assert run.sizes("MPI_Isend") == [{4: (1, 4)}]
    assert run.sizes("MPI_Isend", "completion") == [{}]
    assert run.sizes("MPI_Send_init", "completion") == [{}]
    assert run.counts("MPI_Request_free") == [6]
    assert run.rank_row(0)["untracked_requests"] == 0
