"""Wait and Test forms: exact counts of programs/completion.c, in which rank 0 posts 22 receives of
400 bytes."""

import pytest

CALLS = {
    "MPI_Wait": 3,
    "MPI_Waitall": 2,
    "MPI_Waitany": 3,
    "MPI_Waitsome": 2,
    "MPI_Test": 1,
    "MPI_Testall": 1,
    "MPI_Testany": 1,
    "MPI_Testsome": 1,
}

POLLS = {"MPI_Test": 5, "MPI_Testall": 5, "MPI_Testany": 3, "MPI_Testsome": 2}


def on_rank_0(counts):
    return {call: [{0: (count, 0)}, {}] for call, count in counts.items()}


def test_every_call_that_completed_something_is_counted(profile):
    made = profile("completion", 2).table()
    assert {call: made[call] for call in CALLS} == on_rank_0(CALLS)


def test_every_test_in_vain_is_a_poll(profile):
    assert profile("completion", 2).table("poll") == on_rank_0(POLLS)


def test_calls_and_polls_belong_to_no_communicator(profile):
    run = profile("completion", 2)
    of_completion = (
        "SELECT DISTINCT communicator FROM cell WHERE call LIKE 'MPI_Wait%' OR call "
        "LIKE 'MPI_Test%'"
    )
    assert run.query(0, of_completion) == [(0,)]


def test_every_receive_completes_once_with_what_arrived(profile):
    run = profile("completion", 2)
    arrived = {
        40: (2, 0),
        80: (3, 0),
        120: (3, 0),
        160: (3, 0),
        200: (1, 0),
        240: (1, 0),
        0: (9, 0),
    }
    assert run.sizes("MPI_Irecv") == [{400: (22, 0)}, {}]
    assert run.table("completion") == {"MPI_Irecv": [arrived, {}]}


def test_time_spent_in_vain_tests_and_in_the_final_wait_is_blocked_time(profile):
    run = profile("completion", 2)
    (polled,) = (cell for cell in run.cells(0, "MPI_Irecv", "completion") if cell.bytes == 240)
    assert 0 < polled.blocked_ns <= polled.total_ns


def test_polls_of_an_array_and_the_wait_for_all_of_it_are_blocked_time_of_each_request(profile):
    run = profile("polled_then_all", 2)
    total_ns = {
        call: sum(cell.total_ns for cell in run.cells(0, call, measure))
        for call, measure in (("MPI_Testsome", "poll"), ("MPI_Waitall", "call"))
    }
    (posted,), (completed,) = (
        run.cells(0, "MPI_Irecv", "call"),
        run.cells(0, "MPI_Irecv", "completion"),
    )
    rounded_ns = 2 * 52  # each duration is rounded
    assert completed.blocked_ns == pytest.approx(
        posted.total_ns + 2 * sum(total_ns.values()), abs=rounded_ns
    )
