"""Clocks of hosts: aligned by collectives alone, within the error that is stated."""

from __future__ import annotations

import random

import pytest
from commprof_report.run.alignment import Bound, align, at_knots
from commprof_report.run.database import database_create
from planted import SECOND
from planted_job import HostClock, Job

US, MS = 1_000, 1_000_000
KINDS = tuple(
    (
        "MPI_Allreduce MPI_Barrier MPI_Bcast MPI_Reduce MPI_Allgather MPI_Gather MPI_Scatter "
        "MPI_Ibcast"
    ).split()
)


def aligned(job: Job):
    return align(job.connection(database_create()))


def errors_of(job: Job, alignment, true_ns: int) -> list[tuple[float, float]]:
    """For each rank at a true time: its error against rank 0 on the common axis, and the bound of
    that error."""

    def aligned_ns(rank: int) -> int:
        return alignment.aligned_ns(rank, job.time(rank, true_ns))

    return [
        (
            abs(aligned_ns(rank) - aligned_ns(0)),
            alignment.error([0, rank], job.time(0, true_ns)).distance_ns,
        )
        for rank in range(1, len(job.hosts))
    ]


def random_job(chance: random.Random, seconds: int, calls: int) -> tuple[Job, list[int]]:
    """Offsets of seconds, rates that differ by 100 ppm, late ranks; and the times at which
    something happened."""
    clocks = [
        HostClock(
            chance.randrange(-5 * SECOND, 10**6 * SECOND),
            chance.uniform(-50e-6, 50e-6),
            chance.randrange(-SECOND, SECOND),
        )
        for _ in range(chance.randint(2, 8))
    ]
    job = Job(
        [clock for clock in clocks for _ in range(chance.randint(1, 3))],
        wall_ns=(seconds + 1) * SECOND,
    )
    true_times = sorted(chance.randrange(seconds * SECOND) for _ in range(calls))
    ranks = len(job.hosts)
    groups = [job.world, job.group(range(0, ranks, 2)), job.group(range(ranks // 2, ranks))]
    for true_ns in true_times:
        group = chance.choice(groups)
        arrivals = [true_ns + round(chance.expovariate(1 / (50 * US))) for _ in group.ranks]
        transfers = [round(chance.expovariate(1 / (20 * US))) for _ in group.ranks]
        job.collective(
            chance.choice(KINDS), arrivals, transfers, chance.randrange(len(group.ranks)), group
        )
    return job, true_times


@pytest.mark.parametrize("seed", range(12))
def test_a_timestamp_is_never_farther_off_than_the_stated_error(seed):
    chance = random.Random(seed)
    job, true_times = random_job(
        chance, seconds=chance.choice((1, 15, 40)), calls=chance.choice((30, 200))
    )
    alignment = aligned(job)
    assert alignment.islands == 1
    for true_ns in (*true_times[::7], 0, job.wall_ns):
        for off_ns, error_ns in errors_of(job, alignment, true_ns):
            assert off_ns <= error_ns + 2  # times are rounded to a nanosecond on each clock


def test_ranks_of_one_host_share_a_clock_and_have_no_error():
    job = Job([HostClock(7)] * 4)
    job.collective("MPI_Barrier", [4, 3, 2, 1], [10] * 4)
    alignment = aligned(job)
    assert [alignment.aligned_ns(rank, 0) for rank in range(4)] == [0] * 4
    assert alignment.most_error_ns == 0
    assert alignment.error([0, 1, 2, 3], 5) == (0, 0)


def test_a_return_before_the_last_has_come_is_the_error_of_its_clock():
    job = Job([HostClock()] * 2)
    job.collective("MPI_Barrier", [1_000, 2_000], [10, 10])
    job.rows["sample"][0]["end_ns"] = 1_700
    alignment = aligned(job)
    assert alignment.error([0, 1], 0) == (300, 300)
    assert alignment.most_error_ns == 300


def test_without_a_common_collective_the_wall_clocks_count_and_the_error_is_unknown():
    job = Job([HostClock(wall_ns=3), HostClock(8 * SECOND, wall_ns=500)])
    alignment = aligned(job)
    assert [alignment.aligned_ns(rank, 0) for rank in range(2)] == [0, 497]
    assert alignment.most_error_ns is None
    assert (alignment.islands, alignment.error([0, 1], 0).distance_ns) == (2, float("inf"))


def test_messages_alone_relate_no_clocks():
    """Any collective on a communicator of all hosts does, also a single Barrier at the start."""
    job = Job([HostClock(), HostClock(8 * SECOND)])
    for step in range(100):
        job.send(0, 1, step * MS, step * MS + US)
        job.receive(1, 0, step * MS, step * MS + 3 * US)
        job.send(1, 0, step * MS + US, step * MS + 2 * US)
        job.receive(0, 1, step * MS + US, step * MS + 4 * US)
    assert aligned(job).islands == 2
    job.collective("MPI_Barrier", [0, 0], [US, US])
    assert aligned(job).islands == 1


def test_empty_messages_bind_nobody_but_barriers_do():
    job = Job([HostClock(), HostClock(8 * SECOND)])
    job.collective("MPI_Allreduce", [0, 0], [US, US], message_bytes=0)
    assert aligned(job).islands == 2
    job = Job([HostClock(), HostClock(8 * SECOND)])
    job.collective("MPI_Barrier", [0, 0], [US, US], message_bytes=0)
    assert aligned(job).islands == 1


def test_a_call_that_failed_widens_the_error_and_does_not_end_the_report():
    job = Job([HostClock(), HostClock(8 * SECOND)])
    for step in range(20):
        job.collective("MPI_Barrier", [step * MS, step * MS], [US, US])
    job.rows["sample"][0]["end_ns"] -= 400 * US  # it returned at once, the other came later
    job.rows["sample"][0]["start_ns"] -= 500 * US
    alignment = aligned(job)
    ((off_ns, error_ns),) = errors_of(job, alignment, 10 * MS)
    assert off_ns <= error_ns < MS


def test_a_line_between_two_points_of_bounds_has_exact_extremes():
    bounds = [
        Bound(0, 10, True),
        Bound(0, -10, False),
        Bound(1_000_000, 110, True),
        Bound(1_000_000, 90, False),
    ]
    assert at_knots(bounds, [0, 1_000_000]) == [(-10, 10), (90, 110)]
    # bounded by the rate of 1e-3 alone
    assert at_knots(bounds, [0, 500_000, 1_000_000])[1] == (-410, 510)
