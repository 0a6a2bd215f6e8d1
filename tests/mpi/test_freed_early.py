"""Requests outlive what they were made of (programs/freed_early.c), and processes outlive thousands
of communicators."""

from .harness import Peer


def test_a_type_with_holes_counts_its_data_even_when_it_is_freed_in_flight(profile):
    run = profile("freed_early", 2)
    assert run.sizes("MPI_Isend") == [{24: (1, 24)}, {}]
    assert run.sizes("MPI_Isend", "completion") == [{24: (1, 24)}, {}]
    assert run.sizes("MPI_Irecv", "completion")[1][24] == (1, 0)


def test_a_communicator_freed_in_flight_still_says_who_sent(profile):
    run = profile("freed_early", 2)
    assert Peer("MPI_Issend", "sent", 1, 1, 40) in run.peers(0)
    # 24 bytes on MPI_COMM_WORLD before
    assert Peer("MPI_Irecv", "received", 0, 2, 64) in run.peers(1)
    assert run.sizes("MPI_Issend", "completion") == [{40: (1, 40)}, {}]


def test_a_request_freed_in_flight_does_not_complete_in_another_s_place(profile):
    run = profile("freed_early", 2)
    assert run.sizes("MPI_Ibsend") == [{4: (100, 400), 8: (100, 800)}, {}]
    assert run.sizes("MPI_Ibsend", "completion") == [{8: (100, 800)}, {}]


def test_a_communicator_freed_after_a_matching_probe_still_says_who_sent(profile):
    run = profile("matched_and_freed", 2)
    assert [(cell.communicator, cell.bytes, cell.count) for cell in run.cells(1, "MPI_Mrecv")] == [
        ("", 0, 1),
        ("of Mrecv", 40, 1),
    ]
    assert [(cell.communicator, cell.bytes, cell.count) for cell in run.cells(1, "MPI_Imrecv")] == [
        ("of Imrecv", 40, 1)
    ]
    assert Peer("MPI_Mrecv", "received", 0, 1, 40) in run.peers(1)
    assert Peer("MPI_Imrecv", "received", 0, 1, 40) in run.peers(1)


def test_a_probe_of_no_process_leaves_nothing_to_receive(profile):
    run = profile("matched_and_freed", 2)
    assert run.sizes("MPI_Improbe") == [{0: (100, 0)}, {0: (100, 0)}]
    assert run.rank_row(1)["untracked_requests"] == 0


def test_calls_on_more_communicators_than_there_are_numbers_for_are_all_counted(profile):
    run = profile("many_communicators", 2)
    assert run.counts("MPI_Barrier") == [6002, 6002]
    assert run.counts("MPI_Comm_free") == [6000, 6000]
    assert {cell.communicator: cell.count for cell in run.cells(0, "MPI_Barrier")}["first"] == 2
    assert run.rank_row(0)["folded_communicators"] > 0
    assert run.rank_row(0)["dropped_calls"] == 0


def test_counting_goes_on_after_an_error_handler_has_jumped_out_of_a_call(profile):
    run = profile("jumping_handler", 2)
    assert run.counts("MPI_Allreduce") == [3, 3]
    assert run.counts("MPI_Finalize") == [1, 1]
