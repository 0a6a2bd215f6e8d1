"""Waiting in epochs of post, start, complete and wait: planted jobs in which every begin and every
return is known."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from planted import WORLD
from planted_job import HostClock, Job

US = 1_000


def one_host(ranks: int) -> Job:
    return Job([HostClock(77)] * ranks)


def epoch_call(
    job: Job,
    rank: int,
    call: str,
    begin_ns: int,
    end_ns: int,
    partners: Mapping[int, int | None],
    count: int | None = None,
    **more: object,
) -> None:
    """A call that opens or closes an epoch with these ranks, by their numbers."""
    job.call(call, begin_ns, end_ns, rank)
    job.made[-1].update(communicator=WORLD)
    job.rows["sample"][-1].update(communicator=WORLD, **more)
    for peer, number in partners.items():
        job.add(
            "sample_epoch",
            world_rank=rank,
            thread=0,
            call=call,
            communicator=WORLD,
            object=1,
            peer=peer,
            number=number,
            partners=count or len(partners),
            start_ns=job.time(rank, begin_ns),
            end_ns=job.time(rank, end_ns),
        )


def waits(rows: list[dict]) -> dict[str, tuple[int, int]]:
    return {row["call"]: (row["wait_ns"], row["transfer_ns"]) for row in rows}


def states(rows: list[dict]) -> dict[str, tuple[int, int]]:
    return {row["wait_state"]: (row["calls"], row["wait_ns"]) for row in rows}


def test_a_start_waits_for_the_post_of_its_target(late):
    job = one_host(2)
    epoch_call(job, 0, "MPI_Win_start", 1 * US, 9 * US, {1: 1})
    epoch_call(job, 0, "MPI_Win_complete", 10 * US, 11 * US, {1: 1})
    epoch_call(job, 1, "MPI_Win_post", 8 * US, 8_200, {0: 1})
    epoch_call(job, 1, "MPI_Win_wait", 8_300, 12 * US, {0: 1})
    assert waits(late(job, "call")) == {
        "MPI_Win_start": (7 * US, 1 * US),
        "MPI_Win_complete": (0, 1 * US),
        "MPI_Win_wait": (1_700, 2 * US),
    }
    assert [(row["rank"], row["cost_ns"]) for row in late(job)] == [(0, 1_700), (1, 7 * US)]
    assert states(late(job, "state")) == {"late post": (1, 7 * US), "late complete": (1, 1_700)}


def test_a_complete_waits_for_the_post_where_the_start_has_not(late):
    job = one_host(2)
    epoch_call(job, 0, "MPI_Win_start", 1_000, 1_100, {1: 1})
    epoch_call(job, 0, "MPI_Win_complete", 2 * US, 9 * US, {1: 1})
    epoch_call(job, 1, "MPI_Win_post", 8 * US, 8_200, {0: 1})
    epoch_call(job, 1, "MPI_Win_wait", 8_300, 9_500, {0: 1})
    assert waits(late(job, "call"))["MPI_Win_complete"] == (6 * US, 1 * US)
    assert waits(late(job, "call"))["MPI_Win_start"] == (0, 100)


def test_the_last_of_several_partners_decides(late):
    job = one_host(4)
    for origin, ready_ns in ((0, 3 * US), (1, 7 * US), (2, 5 * US)):
        epoch_call(job, origin, "MPI_Win_complete", ready_ns, ready_ns + 100, {3: 1})
    epoch_call(job, 3, "MPI_Win_wait", 1 * US, 8 * US, {0: 1, 1: 1, 2: 1})
    rows = late(job)
    assert [row["cost_ns"] for row in rows] == [0, 6 * US, 0, 0]


def test_epochs_are_matched_by_pairs_of_ranks(late):
    """Rank 0 has been an origin of rank 1 before, rank 2 has not; rank 3 is another target."""
    job = one_host(4)
    epoch_call(job, 3, "MPI_Win_post", 3 * US, 3_100, {0: 8})
    epoch_call(job, 1, "MPI_Win_post", 2 * US, 2_100, {0: 7})
    epoch_call(job, 1, "MPI_Win_post", 5 * US, 5_100, {0: 8, 2: 1})
    epoch_call(job, 0, "MPI_Win_start", 4 * US, 6 * US, {1: 8})
    epoch_call(job, 2, "MPI_Win_start", 1 * US, 6 * US, {1: 1})
    assert [row["wait_ns"] for row in late(job)] == [1 * US, 0, 4 * US, 0]


@pytest.mark.parametrize(
    ("partners", "count"),
    [({1: 2}, 1), ({1: 1}, 2), ({None: None}, 33)],
    ids=["another epoch", "a partner is not known", "too many"],
)
def test_a_call_of_which_a_partner_s_part_is_not_known_is_not_split(late, partners, count):
    job = one_host(3)
    epoch_call(job, 0, "MPI_Win_start", 1 * US, 9 * US, partners, count)
    epoch_call(job, 1, "MPI_Win_post", 8 * US, 8_200, {0: 1})
    assert late(job, "call") == []


def test_a_successful_test_has_waited_in_those_before(late):
    job = one_host(2)
    epoch_call(job, 0, "MPI_Win_complete", 6 * US, 7 * US, {1: 1})
    times = {"polled_since_ns": job.time(1, 2 * US), "polled_ns": 4 * US}
    epoch_call(job, 1, "MPI_Win_test", 10 * US, 11 * US, {0: 1}, **times)
    assert waits(late(job, "call"))["MPI_Win_test"] == (2 * US, 2 * US + 1 * US)
    assert states(late(job, "state")) == {"late complete": (1, 2 * US)}


def test_a_probe_that_found_a_message_has_waited_in_those_before(late):
    job = one_host(2)
    job.send(0, 1, 8 * US, 8_300)
    job.message(1, "received", 0, 10 * US, 10_100, "MPI_Iprobe")
    job.rows["sample"][-1].update(polled_since_ns=job.time(1, 4 * US), polled_ns=3 * US)
    job.numbers.clear()
    job.receive(1, 0, 11 * US, 11_500)
    calls = waits(late(job, "call"))
    assert calls["MPI_Iprobe"] == (2 * US, 1 * US + 100)
    assert calls["MPI_Recv"] == (0, 500)
    assert states(late(job, "state")) == {"late sender": (1, 2 * US)}
