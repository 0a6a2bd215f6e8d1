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


def column(rows: list[dict], key: str) -> list:
    return [row[key] for row in rows]


def one_host(ranks: int) -> Job:
    return Job([HostClock(77)] * ranks)


def states(rows: list[dict]) -> dict[str, tuple[int, int]]:
    return {row["wait_state"]: (row["calls"], row["wait_ns"]) for row in rows}


# Dependencies of a rank


def test_a_receive_waits_until_its_send_is_posted(late):
    job = one_host(2)
    job.receive(1, 0, 1_000, 9_500)
    job.send(0, 1, 8_000, 8_300)
    rows = late(job)
    assert (column(rows, "wait_ns"), column(rows, "transfer_ns")) == ([0, 7_000], [300, 1_500])
    assert column(rows, "cost_ns") == [7_000, 0]
    assert (
        column(rows, "message_calls"),
        column(rows, "collectives"),
        column(rows, "last_count"),
    ) == ([1, 1], [0, 0], [1, 0])
    assert states(late(job, "state")) == {"late sender": (1, 7_000)}


def test_a_send_that_returns_after_its_receive_was_posted_has_waited_for_it(late):
    job = one_host(2)
    job.send(0, 1, 1_000, 9_500)
    job.receive(1, 0, 8_000, 9_900)
    rows = late(job)
    assert (column(rows, "wait_ns"), column(rows, "transfer_ns"), column(rows, "cost_ns")) == (
        [7_000, 0],
        [1_500, 1_900],
        [0, 7_000],
    )
    assert states(late(job, "state")) == {"late receiver": (1, 7_000)}


@pytest.mark.parametrize("call", ["MPI_Bsend", "MPI_Ibsend"])
def test_a_send_from_a_buffer_never_waits_for_its_receiver(late, call):
    job = one_host(2)
    job.send(0, 1, 1_000, 9_500, call=call)
    job.call("MPI_Wait", 2_000, 9_500)
    job.receive(1, 0, 8_000, 9_900)
    assert late(job, "state") == []


def test_messages_of_irecv_and_isend_are_waited_for_in_the_calls_that_complete_them(late):
    job = one_host(2)
    job.receive(1, 0, 1_000, 9_500, call="MPI_Irecv")
    job.call("MPI_Wait", 4_000, 9_500, 1)
    job.send(0, 1, 9_000, 20_000, call="MPI_Isend")
    job.call("MPI_Waitall", 9_200, 20_000, 0)
    job.send(0, 1, 31_000, 39_000, call="MPI_Isend")
    job.call("MPI_Test", 32_000, 39_000, 0)
    job.receive(1, 0, 38_000, 39_500)
    assert column(late(job), "wait_ns") == [6_000, 5_000]  # 32 to 38 us, and 4 to 9 us
    assert column(late(job), "transfer_ns")[0] == 1_000 + 10_800
    calls = {row["call"]: row for row in late(job, "call")}
    assert (
        calls["MPI_Irecv"]["wait_ns"],
        calls["MPI_Irecv"]["collectives"],
        calls["MPI_Isend"]["wait_ns"],
    ) == (5_000, 1, 6_000)
    assert states(late(job, "state")) == {"late receiver": (1, 6_000), "late sender": (1, 5_000)}


def test_the_later_message_of_a_sendrecv_decides(late):
    job = one_host(3)
    job.exchange(0, 1, 2, 1_000, 9_000)  # to 1, from 2
    job.receive(1, 0, 3_000, 3_500)
    job.send(2, 0, 7_000, 7_200)
    job.exchange(0, 1, 2, 21_000, 29_000)
    job.receive(1, 0, 28_000, 28_500)
    job.send(2, 0, 23_000, 23_200)
    rows = late(job)
    assert (column(rows, "wait_ns"), column(rows, "cost_ns")) == (
        [6_000 + 7_000, 0, 0],
        [0, 7_000, 6_000],
    )
    assert column(rows, "message_calls") == [2, 2, 2]


def test_a_call_that_completes_a_message_from_elsewhere_is_not_split(late):
    job = one_host(3)
    job.receive(0, 1, 0, 9_500, call="MPI_Irecv")
    job.receive(0, -1, 10, 9_500, call="MPI_Irecv", is_numbered=False)
    job.send(1, 0, 4_000, 4_100)
    job.call("MPI_Waitall", 500, 9_500, 0)
    (row,) = late(job, "run")
    assert of(row, "wait_ns message_calls unmatched") == (0, 1, 1)  # the send alone


def test_persistent_messages_and_communicators_are_told_apart(late):
    job = one_host(2)
    other = job.group((0, 1), "other")
    job.receive(1, 0, 1_000, 6_000, group=other)
    job.send(0, 1, 5_000, 5_100, group=other)
    job.receive(1, 0, 11_000, 19_000)
    job.send(0, 1, 15_000, 15_100)
    calls = {(row["call"], row["communicator"]): row["wait_ns"] for row in late(job, "call")}
    assert calls["MPI_Recv", "other"] == calls["MPI_Recv", "MPI_COMM_WORLD"] == 4_000
    assert column(late(job, "rank", "--communicator", "other"), "wait_ns") == [0, 4_000]
    assert column(late(job, "rank", "--call", "Send"), "wait_ns") == [0, 0]


def test_where_receives_have_no_number_wildcards_are_named(late, report, tmp_path):
    job = one_host(2)
    for step in range(2):
        job.send(0, 1, step * 10_000 + 8_000, step * 10_000 + 8_100)
        job.receive(1, 0, step * 10_000, step * 10_000 + 9_000, is_numbered=False)
    job.send(1, 0, 30_000, 30_100)
    job.receive(0, 1, 29_000, 31_000)
    (row,) = late(job, "run")
    assert (row["unmatched"], row["unnumbered"]) == (4, 2)
    said = (
        "4 messages whose other side is not known, as of receives with MPI_ANY_SOURCE or "
        "MPI_ANY_TAG (mpi4py's default)"
    )
    assert said in report("late", job.write(tmp_path / "run.db")).out


def test_coverage_counts_messages_that_are_not_matched(late):
    job = one_host(2)
    job.receive(1, 0, 0, 9_000)
    job.send(0, 1, 8_000, 8_000)
    job.receive(1, 0, 10_000, 11_000)  # its send was not read
    (row,) = late(job, "run")
    assert of(row, "coverage wait_ns unmatched total_ns") == (0.9, 8_000, 1, 10_000)


def test_the_rank_that_sends_late_is_named(late, report, tmp_path):
    job = Job([HostClock()] * 3, wall_ns=SECOND)
    for step in range(60):
        for receiver in (0, 2):
            job.receive(receiver, 1, step * 10 * MS, step * 10 * MS + 6 * MS + 100)
            job.send(
                1,
                receiver,
                step * 10 * MS + 6 * MS + 10 * receiver,
                step * 10 * MS + 6 * MS + 10 * receiver + 9,
            )
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"], row["wait_share"] > 0.99, row["coverage"]) == (
        "imbalance",
        "1",
        True,
        1,
    )
    text = report("late", tmp_path / "run.db").out
    assert (
        "rank 1 on node00 causes 100.0 % of the waiting" in text
        and "240 calls for messages" in text
    )


def test_messages_in_balance_name_nobody(late):
    chance = random.Random(4)
    job = Job([HostClock()] * 2, wall_ns=SECOND)
    for step in range(100):
        begins = [step * 10 * MS + chance.randrange(MS) for _ in range(2)]
        for rank in range(2):
            job.exchange(rank, 1 - rank, 1 - rank, begins[rank], max(begins) + 20 * US)
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"]) == ("spread", None)


def test_messages_between_clocks_that_are_aligned_are_split_within_the_error(late):
    job = Job([HostClock(), HostClock(9 * SECOND, 20e-6)])
    for step in range(100):
        job.collective("MPI_Barrier", [step * 20 * MS] * 2, [5 * US] * 2)
        job.receive(1, 0, step * 20 * MS + MS, step * 20 * MS + 5 * MS)
        job.send(0, 1, step * 20 * MS + 4 * MS, step * 20 * MS + 4 * MS + US)
    (row,) = late(job, "run", "--call", "Recv,Send")
    assert 0 < row["error_ns"] < 20 * US
    assert row["unsure"] == 100  # a send of 1 us is too short for these clocks, but not the receive
    assert (
        abs(column(late(job, "rank", "--call", "Recv"), "wait_ns")[1] - 300 * MS)
        <= 100 * row["error_ns"] + 1e-4 * 300 * MS
    )


def test_messages_match_by_tag_whatever_the_order_in_which_they_are_received(late):
    job = one_host(2)
    job.receive(1, 0, 500, 19_000, tag=8, call="MPI_Irecv")
    job.receive(1, 0, 1_000, 6_000, tag=7)
    job.send(0, 1, 5_000, 5_100, tag=7)
    job.send(0, 1, 15_000, 15_100, tag=8)
    job.call("MPI_Wait", 10_000, 19_000, 1)
    assert states(late(job, "state")) == {"late sender": (2, 4_000 + 5_000)}


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


def test_numbers_that_start_again_match():
    sent, received = messages(10, first=65_530), messages(9, 1_100, first=65_531)
    assert found([part(sent)], [part(received)]) == [(place + 1, place) for place in range(9)]


def test_at_the_border_of_a_window_messages_whose_other_side_is_missing_do_not_match():
    sent, received = messages(4, 10_000, first=101), messages(4, 12_000, first=99)
    assert found([part(sent, 10_000, 20_000)], [part(received, 10_000, 20_000)]) == [(0, 2), (1, 3)]


def test_windows_at_different_times_do_not_match_though_numbers_are_equal():
    sent, received = messages(2, 0, first=7), messages(2, 50_000, first=7)
    assert found([part(sent, 0, 10_000)], [part(received, 50_000, 60_000)]) == []


def test_each_window_finds_its_place_beside_a_side_that_was_sampled_all_the_time():
    """The other side has 100,000 messages, more than there are numbers, in between."""
    sent, first, later = (
        messages(100_010),
        messages(3, 200),
        messages(3, 100_000_200, first=100_001),
    )
    windows = [part(first, 0, 5_000), part(later, 100_000_000, 100_005_000)]
    assert found([part(sent)], windows) == [
        (0, 0),
        (1, 1),
        (2, 2),
        (100_000, 0),
        (100_001, 1),
        (100_002, 2),
    ]


def test_a_missing_number_matches_nothing():
    sent, received = messages(4), messages(4, 100)
    assert found([part(sent)], [part(received[:1] + received[2:])]) == [(0, 0), (2, 1), (3, 2)]


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
