"""Ranks that gather from the others, or answer them, are late only by what they do outside MPI."""

from __future__ import annotations

import parallel
import planted
import pytest
from commprof_report.late.judgement import is_by_transfer
from planted import Cell, Rank, Sample, Window

MS, ROUNDS, RANKS = 1_000_000, 20, 3


def gathering_run(is_by_messages: bool) -> list[Rank]:
    """After 50 ms of work ranks 1 and 2 send to rank 0, and wait 20 ms for it in an Allreduce: for
    as long its receives take, or it works in between."""
    ranks = []
    for rank in range(RANKS):
        samples = []
        for number in range(1, ROUNDS + 1):
            begin_ns = (100 * number + 50) * MS
            late_ns = begin_ns + 20 * MS + 40_000
            if rank == 0:
                long_ns = 10 * MS if is_by_messages else 10_000
                for source in (1, 2):
                    at_ns = begin_ns + 20_000 + (source - 1) * long_ns
                    times = (at_ns, at_ns + long_ns)
                    samples.append(Sample("MPI_Recv", *times, peer=source, number=number, tag=0))
            else:
                samples.append(
                    Sample("MPI_Send", begin_ns, begin_ns + 10_000, peer=0, number=number, tag=0)
                )
            came_ns = late_ns if rank == 0 else begin_ns + 20_000
            samples.append(Sample("MPI_Allreduce", came_ns, late_ns + 10_000, sequence=number))
        calls = sorted({sample.call for sample in samples})
        ranks.append(
            Rank(
                rank,
                RANKS,
                communicators=[parallel.world(rank, RANKS)],
                samples=samples,
                cells=[
                    Cell(
                        call,
                        1_000,
                        [
                            sample.end_ns - sample.start_ns
                            for sample in samples
                            if sample.call == call
                        ],
                    )
                    for call in calls
                ],
                windows=[Window(0, 10 * planted.SECOND)],
                facts={"boot_id": "one", "time_namespace": "time:[1]"},
            )
        )
    return ranks


def test_a_rank_that_gathers_is_not_late_and_one_that_works_longer_is(report, tmp_path):
    said = {}
    for name, is_by_messages in (("gathers", True), ("works", False)):
        folder = planted.write_databases(tmp_path / name, gathering_run(is_by_messages))
        (row,) = report("late", folder, "--by", "run", "--json").rows
        said[name] = row["late_ranks"], " ".join(report("late", folder).out.split())
    assert said["gathers"][0] is None and said["works"][0] == "0"
    assert (
        "No rank is late: rank 0 causes 100.0 % of the waiting by serving the others with messages."
        in said["gathers"][1]
    )
    assert "serving" not in said["works"][1]


@pytest.mark.parametrize(
    ("own_calls", "own_ns", "is_serving"),
    [
        (40, [100, 90, 0, 0, 0, 0], True),
        (30, [100, 90, 0, 0, 0, 0], False),  # hardly more messages than the others
        (40, [150, 90, 0, 0, 0, 0], False),  # longer outside MPI than in transfer
        (40, [120, 90, 30, 0, 0, 0], False),  # or in files, together
        (40, [50, 60, 0, 90, 0, 0], True),
        (40, [100, 50, 0, 0, 0, 0], False),  # in neither
    ],
)
def test_what_serving_is(own_calls, own_ns, is_serving):
    others = [100, 50, 0, 40, 0, 0]
    spent_ns = {0: own_ns, 1: others, 2: others}
    assert is_by_transfer({0: own_calls, 1: 20, 2: 20}, spent_ns, {0}) == is_serving
