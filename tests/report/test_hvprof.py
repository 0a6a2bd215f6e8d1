"""`hvprof-report hvprof`: sizes, calls and times by hvprof's classes, of one run and of the same
without fusion."""

from __future__ import annotations

import random
import re

import planted
import pytest
import training
from cases import of
from planted import Cell, Rank, Sample, Window

MIB = 1 << 20
OTHER_WORK = "Not the same work, so nothing is said of fusion: "


def ranks_with(*cells: Cell) -> list[Rank]:
    known = [planted.communicators_of(rank)[:1] for rank in range(2)]
    return [Rank(rank, 2, communicators=known[rank], cells=[*cells]) for rank in range(2)]


@pytest.fixture
def fused(tmp_path):
    """Two ranks: one of the 64 MiB messages is one byte too long for its class."""
    cells = (
        Cell("MPI_Allreduce", 8, [1_000] * 10),
        Cell("MPI_Allreduce", 128 << 10, [2_000] * 4),
        Cell("MPI_Allreduce", 64 * MIB, [5_000_000] * 3),
        Cell("MPI_Allreduce", 64 * MIB + 1, [6_000_000]),
        Cell("MPI_Wait", 0, [7_000], communicator=0),
    )
    return planted.write_databases(tmp_path / "fused", ranks_with(*cells))


@pytest.fixture
def unfused(tmp_path):
    cells = (Cell("MPI_Allreduce", 100, [10_000] * 500), Cell("MPI_Bcast", 100, [3_000]))
    return planted.write_databases(tmp_path / "unfused", ranks_with(*cells))


def test_each_call_has_a_row_a_class_in_use(report, fused):
    rows = report("hvprof", fused, "--json").rows
    assert [of(row, "traffic bytes_low bytes_high count sizes") for row in rows] == [
        ("bulk", 1, 128 << 10, 8, 1),
        ("bulk", 32 * MIB + 1, 64 * MIB, 6, 1),
        ("bulk", 64 * MIB + 1, None, 2, 1),
        ("control", 1, 128 << 10, 20, 1),
    ]
    assert {row["library"] for row in rows} == {"MPI"}


def test_the_run_without_fusion_stands_beside_it(report, fused, unfused):
    rows = report("hvprof", fused, "--unfused", unfused, "--json").rows
    small = [of(row, "fusion call traffic count") for row in rows if row["bytes_high"] == 128 << 10]
    assert small == [
        ("as run", "MPI_Allreduce", "bulk", 8),
        ("unfused", "MPI_Allreduce", "bulk", 1_000),
        ("as run", "MPI_Allreduce", "control", 20),
        ("unfused", "MPI_Bcast", "bulk", 2),
    ]


def test_the_text_says_what_can_be_seen_and_how_to_see_more(report, fused, unfused):
    alone = report("hvprof", fused).out.splitlines()
    said = "As run, 2 ranks, no steps found. MPI: 36 calls that carry messages, 18 a rank."
    assert alone[0] == said and "a fused message counts once" in alone[1]
    assert "run once with fusion off (Horovod: HOROVOD_FUSION_THRESHOLD=0;" in alone[1]
    assert alone[2] == "Give both runs: hvprof RUN --unfused OTHER_RUN."
    assert "fusion" not in alone[4] and "NCCL" not in "".join(alone)
    both = report("hvprof", fused, "--unfused", unfused).out.splitlines()
    assert both[1].startswith("Unfused, 2 ranks, no steps found. MPI: 1,002 calls")
    assert "fusion" in both[4]


# Runs with steps: a step's gradients are reduced as messages of the given sizes, after rounds of
# negotiation.

STEPS = 30
UNFUSED = [400_000, 200_000, 100_000, 60_000, 40_000, 2_000] * 4
MS = 1_000_000


def job_of(
    cuts: list[list[int]], ns_of_each: int = 100_000, steps: int = STEPS, negotiation: int = 5
) -> training.Job:
    """The gradients of a step are cut in one of these ways, in any order."""
    job = training.Job(3)
    training.parameters(job, UNFUSED)
    ways = [step % len(cuts) for step in range(steps)]
    random.Random(1).shuffle(ways)
    for step, way in enumerate(ways):
        job.compute(20 * MS)
        for size in cuts[way]:
            for _ in range(negotiation):
                job.call("Allreduce", 8, ns=10_000)
            job.call("Allreduce", size, step, ns=ns_of_each)
    return job


@pytest.fixture
def run_of(tmp_path):
    def made(
        name: str, job: training.Job, facts: dict[str, str] | None = None, world_size: int = 2
    ) -> object:
        ranks = [training.rank_of(job, rank, world_size) for rank in range(world_size)]
        for rank in ranks:
            rank.facts.update(facts or {})
            rank.steps = training.marks(job)
        return planted.write_databases(tmp_path / name, ranks)

    return made


WHOLE = sum(UNFUSED)
FUSED = [
    [WHOLE // 2, WHOLE // 2],
    [WHOLE - 250_000, 250_000],
    [WHOLE - 500_000, 400_000, 100_000],
    [WHOLE],
]


@pytest.fixture
def in_steps(run_of):
    return run_of("fused", job_of(FUSED, 300_000)), run_of("unfused", job_of([UNFUSED]))


def sentence(report, *words) -> str:
    return report("hvprof", *words).out.splitlines()[2]


def test_one_sentence_says_what_fusion_did(report, in_steps):
    fused, unfused = in_steps
    lines = report("hvprof", fused, "--unfused", unfused).out.splitlines()
    said = "24 messages of 134 KB a step became 2.0 of 1.63 MB; time in MPI_Allreduce -7"
    assert lines[2].startswith(said) and " % (2." in lines[2] and lines[2].endswith(" us).")
    assert lines[0].startswith("As run, 2 ranks, 2")
    assert "a step and rank: bulk 2.0 calls, 3.21 MB, " in lines[0]
    assert "; control 9.8 calls, 79 B, " in lines[0]
    assert "calls a step  bytes a step  time a step" in lines[4]


def test_other_gradients_are_other_work(report, run_of, in_steps):
    half = run_of("half", job_of([UNFUSED[: len(UNFUSED) // 2]]))
    expected = f"{OTHER_WORK}MPI_Allreduce carries 1.60 MB a step unfused, 3.21 MB as run."
    assert sentence(report, in_steps[0], "--unfused", half) == expected


def of_nccl(sizes: list[int], kernel_ns: int | None) -> list[Rank]:
    """Twenty steps of these AllReduces, whose kernels begin after the step's end on the host."""
    call, own = "ncclAllReduce", (planted.NCCL, planted.NCCL_IDENTITY, "", 2)
    facts = {"host": "node00", "boot_id": "a1", "time_namespace": "time:[1]"}
    facts |= {"nccl.version": "2.28.9", "command_line": "train --steps 20"}
    made = {"constructor": "ncclCommInitRank", "library": "nccl"}
    made["begun"] = [planted.Collective(call, size) for _ in range(20) for size in sizes]
    device = {"memory_kind": "device"}
    cells = [Cell(call, size, [8_000] * 20, planted.NCCL, **device) for size in sizes]
    if kernel_ns:
        timed = ([kernel_ns] * 20, planted.NCCL, "device")
        cells += [Cell(call, size, *timed, **device) for size in sizes]
    samples = []
    for step in range(20):
        for place, size in enumerate(sizes):
            at = (step * 40 + place) * MS
            device_ns = kernel_ns and (at + 12 * MS, at + 12 * MS + kernel_ns)
            what = {"bytes": size, "device_ns": device_ns, "sequence": len(samples) + 1}
            samples.append(Sample(call, at, at + 8_000, planted.NCCL, **what))
    what = {"facts": facts, "cells": cells, "samples": samples, "windows": [Window(0, 10**10)]}
    return [
        Rank(rank, 2, communicators=[planted.Communicator(*own, rank, **made)], **what)
        for rank in range(2)
    ]


@pytest.mark.parametrize(
    "kernel_ns, said",
    [(320_000, "time in ncclAllReduce -75 %"), (None, "how long ncclAllReduce took")],
)
def test_nccl_is_compared_by_its_time_on_the_device(report, tmp_path, kernel_ns, said):
    sizes = [(index + 1) * MIB for index in range(8)]
    halves = [sum(sizes) // 2 - MIB, sum(sizes) // 2 + MIB]
    unfused, fused = (
        planted.write_databases(tmp_path / str(len(own)), of_nccl(own, kernel_ns))
        for own in (sizes, halves)
    )
    assert sentence(report, fused, "--unfused", unfused).startswith(
        f"8.0 messages of 4.72 MB a step became 2.0 of 18 MiB; {said}"
    )


def test_sizes_that_are_no_powers_of_two_are_compared_with_the_line_between(report, tmp_path):
    """1,448 B is half way between 1 and 2 KiB: of 10 and 40 us, 20 us; it takes 30."""
    cells = [
        Cell("MPI_Allreduce", size, [taken_us * 1_000] * 25)
        for size, taken_us in ((1024, 10), (1448, 30), (2048, 40), (3000, 77))
    ]
    text = report("hvprof", planted.write_databases(tmp_path / "odd", ranks_with(*cells))).out
    said = re.search("Sizes that are no powers of two: (.*)", text)[1]
    assert re.fullmatch(
        "MPI_Allreduce takes (4[89]|5[01]).[0-9] % more than on the line between powers of two "
        r"\((4[89]\d|50\d) us in 50 calls of 1 size, by medians\)\.",
        said,
    ), said
    even = planted.write_databases(tmp_path / "even", ranks_with(cells[0], cells[2]))
    assert "powers of two" not in report("hvprof", even).out
