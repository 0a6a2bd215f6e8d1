"""Ranks that gather from the others, or answer them, are late only by what they do outside MPI."""

from __future__ import annotations

import parallel
import planted
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
        spent = [
            [one.end_ns - one.start_ns for one in samples if one.call == call] for call in calls
        ]
        cells = [Cell(call, 1_000, own) for call, own in zip(calls, spent)]
        known = {"communicators": [parallel.world(rank, RANKS)], "samples": samples, "cells": cells}
        known["facts"] = {"boot_id": "one", "time_namespace": "time:[1]"}
        ranks.append(Rank(rank, RANKS, windows=[Window(0, 10 * planted.SECOND)], **known))
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
