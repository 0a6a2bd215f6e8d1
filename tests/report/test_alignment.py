"""Clocks of hosts: aligned by collectives alone, within the error that is stated."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import planted
import pytest
from commprof_report.run.alignment import Bound, Clock, align, at_knots
from commprof_report.run.database import database_create
from planted import SECOND
from planted_job import HostClock, Job

US, MS = 1_000, 1_000_000
KINDS = "Allreduce Barrier Bcast Reduce Allgather Gather Scatter Ibcast".split()


def aligned(job: Job):
    return align(job.connection(database_create()))


def errors_of(job: Job, alignment, true_ns: int) -> list[tuple[float, float]]:
    """For each rank at a true time: its error against rank 0 on the common axis, and the bound of
    that error."""
    times_ns = [job.time(rank, true_ns) for rank in range(len(job.hosts))]
    first_ns, *others_ns = (alignment.aligned_ns(*own) for own in enumerate(times_ns))
    return [
        (abs(own_ns - first_ns), alignment.error([0, rank], times_ns[0]).distance_ns)
        for rank, own_ns in enumerate(others_ns, 1)
    ]


def random_job(chance: random.Random, seconds: int, calls: int) -> tuple[Job, list[int]]:
    """Offsets of seconds, rates that differ by 100 ppm, late ranks; and the times at which
    something happened."""
    clocks = []
    for _ in range(chance.randint(2, 8)):
        offset_ns, drift = (
            chance.randrange(-5 * SECOND, 10**6 * SECOND),
            chance.uniform(-5e-5, 5e-5),
        )
        clock = HostClock(offset_ns, drift, chance.randrange(-SECOND, SECOND))
        clocks += [clock] * chance.randint(1, 3)
    job = Job(clocks, wall_ns=(seconds + 1) * SECOND)
    true_times = sorted(chance.randrange(seconds * SECOND) for _ in range(calls))
    ranks = len(job.hosts)
    groups = [job.world, job.group(range(0, ranks, 2)), job.group(range(ranks // 2, ranks))]
    for true_ns in true_times:
        group = chance.choice(groups)
        arrivals = [true_ns + round(chance.expovariate(1 / (50 * US))) for _ in group.ranks]
        transfers = [round(chance.expovariate(1 / (20 * US))) for _ in group.ranks]
        call, root = f"MPI_{chance.choice(KINDS)}", chance.randrange(len(group.ranks))
        job.collective(call, arrivals, transfers, root, group)
    return job, true_times


@pytest.mark.parametrize("seed", range(12))
def test_a_timestamp_is_never_farther_off_than_the_stated_error(seed):
    chance = random.Random(seed)
    job, true_times = random_job(chance, chance.choice((1, 15, 40)), chance.choice((30, 200)))
    alignment = aligned(job)
    assert alignment.islands == 1
    for true_ns in (*true_times[::7], 0, job.wall_ns):
        for off_ns, error_ns in errors_of(job, alignment, true_ns):
            assert off_ns <= error_ns + 2  # times are rounded to a nanosecond on each clock


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
    bounds = [Bound(0, 10, True), Bound(0, -10, False)]
    bounds += [Bound(1_000_000, 110, True), Bound(1_000_000, 90, False)]
    assert at_knots(bounds, [0, 1_000_000]) == [(-10, 10), (90, 110)]
    # bounded by the rate of 1e-3 alone
    assert at_knots(bounds, [0, 500_000, 1_000_000])[1] == (-410, 510)


# Times on the run's axis, many at once as one by one; and a machine without numpy.

REPORT = Path(__file__).resolve().parents[2] / "report"
KNOTS = [(1_000, 5_000, 0.0), (2_000, 6_003, 0.0), (10_000_000_000_000, 10_000_400_000_000, 0.0)]


@pytest.mark.parametrize("knots", [KNOTS[:1], KNOTS[:2], KNOTS], ids=["one", "two", "far apart"])
def test_many_readings_of_a_clock_are_mapped_as_each_one_is(knots):
    clock = Clock(0, 0, knots)
    readings = [0, 999, 1_000, 1_001, 1_999, 2_000, 2_001]
    readings += [5_000_000_000_123, 10_000_000_000_000, 1 << 50]
    assert clock.axis_times_ns(np.array(readings)).tolist() == [
        clock.axis_ns(reading) for reading in readings
    ]


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
from commprof_report.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_who_has_no_numpy_is_told_so_in_a_line_and_has_all_help(tmp_path):
    def report(*words: object) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-B", "-c", WITHOUT_NUMPY, *map(str, words)],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(REPORT)},
        )

    ranks = [planted.Rank(0, 1, cells=[planted.Cell("MPI_Barrier", 0, [1000])])]
    done = report("calls", planted.write_databases(tmp_path / "run", ranks))
    assert done.returncode != 0 and done.stderr.count("\n") == 1 and "python3-numpy" in done.stderr
    assert report("--help").returncode == 0  # imports all commands, as for manual pages
