"""Waiting for messages: planted jobs in which every post and every return is known."""

from __future__ import annotations

import random

import pytest
from cases import of
from commprof_report.base import Columns, np
from commprof_report.late.messages import are_possible, matches
from planted import SECOND
from planted_job import HostClock, Job

US, MS = 1_000, 1_000_000
ALWAYS_NS = 1 << 60


def one_host(ranks: int) -> Job:
    return Job([HostClock(77)] * ranks)


# Dependencies of a rank


@pytest.mark.parametrize("call", ["MPI_Bsend", "MPI_Ibsend"])
def test_a_send_from_a_buffer_never_waits_for_its_receiver(late, call):
    job = one_host(2)
    job.send(0, 1, 1_000, 9_500, call=call)
    job.call("MPI_Wait", 2_000, 9_500)
    job.receive(1, 0, 8_000, 9_900)
    assert late(job, "state") == []


def test_a_call_that_completes_a_message_from_elsewhere_is_not_split(late):
    job = one_host(3)
    job.receive(0, 1, 0, 9_500, call="MPI_Irecv")
    job.receive(0, -1, 10, 9_500, call="MPI_Irecv", is_numbered=False)
    job.send(1, 0, 4_000, 4_100)
    job.call("MPI_Waitall", 500, 9_500, 0)
    (row,) = late(job, "run")
    assert of(row, "wait_ns message_calls unmatched") == (0, 1, 1)  # the send alone


def test_coverage_counts_messages_that_are_not_matched(late):
    job = one_host(2)
    job.receive(1, 0, 0, 9_000)
    job.send(0, 1, 8_000, 8_000)
    job.receive(1, 0, 10_000, 11_000)  # its send was not read
    (row,) = late(job, "run")
    assert of(row, "coverage wait_ns unmatched total_ns") == (0.9, 8_000, 1, 10_000)


def test_messages_in_balance_name_nobody(late):
    chance = random.Random(4)
    job = Job([HostClock()] * 2, wall_ns=SECOND)
    for step in range(100):
        begins = [step * 10 * MS + chance.randrange(MS) for _ in range(2)]
        for rank in range(2):
            job.exchange(rank, 1 - rank, 1 - rank, begins[rank], max(begins) + 20 * US)
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"]) == ("spread", None)


# Which messages are the same


def messages(
    number: int, begin_ns: int = 0, every_ns: int = 1_000, first: int = 1, late_ns: int = 500
) -> list[tuple[int, int, int]]:
    """One side's, in the order of posting: number, when it was posted, when it was complete."""
    begins = [begin_ns + place * every_ns for place in range(number)]
    return [
        ((first + place - 1) % 65_535 + 1, at_ns, at_ns + late_ns)
        for place, at_ns in enumerate(begins)
    ]


def part(
    own: list[tuple[int, int, int]], begin_ns: int = -ALWAYS_NS, end_ns: int = ALWAYS_NS
) -> list[tuple[int, ...]]:
    """Sampled in one window; with the place of each."""
    return [(*message, begin_ns, end_ns, place) for place, message in enumerate(own)]


def found(sent: list[list], received: list[list]) -> list[tuple[int, int]]:
    rows = [(False, *row) for own in sent for row in own]
    rows += [(True, *row) for own in received for row in own]
    is_received, number, posted_ns, gone_ns, since_ns, until_ns, place = map(np.array, zip(*rows))
    sides = Columns(
        channel=np.zeros(len(rows), np.int64),
        number=number,
        is_received=is_received,
        posted_ns=posted_ns,
        gone_ns=gone_ns,
        since_ns=since_ns,
        until_ns=until_ns,
        is_probe=np.zeros(len(rows), bool),
    )
    send, receive = matches(sides)
    own = are_possible(sides, send, receive, np.zeros(len(send)))
    return sorted(zip(place[send[own]].tolist(), place[receive[own]].tolist()))


def test_at_the_border_of_a_window_messages_whose_other_side_is_missing_do_not_match():
    sent, received = messages(4, 10_000, first=101), messages(4, 12_000, first=99)
    assert found([part(sent, 10_000, 20_000)], [part(received, 10_000, 20_000)]) == [(0, 2), (1, 3)]


def test_windows_at_different_times_do_not_match_though_numbers_are_equal():
    sent, received = messages(2, 0, first=7), messages(2, 50_000, first=7)
    assert found([part(sent, 0, 10_000)], [part(received, 50_000, 60_000)]) == []


def test_threads_that_post_at_once_may_have_their_numbers_the_other_way_round():
    sent, received = messages(4), messages(4, 100)
    swapped = [sent[0], (3, *sent[1][1:]), (2, *sent[2][1:]), sent[3]]
    assert found([part(swapped)], [part(received)]) == [(0, 0), (1, 2), (2, 1), (3, 3)]


def test_numbers_by_which_a_message_is_received_before_it_is_sent_are_wrong():
    sent, received = messages(4, 90_000, every_ns=100_000), messages(4, 0, every_ns=100_000)
    assert found([part(sent)], [part(received)]) == []


def test_windows_with_wrong_numbers_leave_others_as_they_are(late):
    job = one_host(2)
    for begin_ns in (0, 2 * SECOND):
        for rank in range(2):
            job.window(rank, begin_ns, begin_ns + SECOND)
    job.receive(1, 0, 1_000, 2_000)
    job.send(0, 1, 90_000, 91_000)
    job.receive(1, 0, 2 * SECOND, 2 * SECOND + 5_000)
    job.send(0, 1, 2 * SECOND + 4_000, 2 * SECOND + 4_100)
    (row,) = late(job, "run")
    assert (row["unmatched"], row["wait_ns"]) == (2, 4_000)
