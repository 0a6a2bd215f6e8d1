"""Jobs of two ranks that pause and then call collectives, one directly after the other, all
sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import parallel
from planted import Cell, Collective, Rank, Sample, Signature, Start, Window

RANKS, STEPS, PAUSE_NS, BETWEEN_NS, START_NS = 2, 100, 20_000_000, 2_000, 100
GRADIENT, BITS = 1, 2
SIGNATURES = [
    Signature(GRADIENT, op="MPI_SUM"), Signature(BITS, "MPI_LONG_LONG", 8, 8, 1, 1, "MPI_BAND"),
]


class Call(NamedTuple):
    bytes: int
    transfer_ns: int
    late_ns: int = 0  # by which rank 1 comes later than rank 0
    pause_ns: int = BETWEEN_NS  # before it
    signature: int = GRADIENT


def bursts(
    calls: Sequence[Call], times: int = STEPS, thread: int = 0, **more: object
) -> list[Rank]:
    """Runs of Allreduces. thread 1: beside the main one."""
    return [_rank(rank, calls, times, thread, more) for rank in range(RANKS)]


def operations(
    name: str, calls: Sequence[Call], at_once: int = 1, blocked: float = 1.0
) -> list[Rank]:
    """The same, all but the first call as nonblocking or persistent operations, so many of which
    are in flight together. blocked: the share of their time in which ranks wait for them."""
    ranks = bursts(calls)
    for rank in ranks:
        rank.samples, made = (
            [sample for sample in rank.samples if (sample.bytes == calls[0].bytes) == is_first]
            for is_first in (True, False)
        )
        spent: dict[int, list[int]] = {}
        for first in range(0, len(made), at_once):
            together = made[first : first + at_once]
            done_ns, begun_ns = together[-1].end_ns, together[-1].start_ns
            for number, sample in enumerate(together, first + 1):
                _start(rank, name, sample, number, done_ns)
                spent.setdefault(sample.bytes, []).append(done_ns - sample.start_ns)
            wait_ns = int(blocked * (done_ns - begun_ns)) // 2 * 2 - START_NS
            rank.samples.append(
                Sample("MPI_Waitall", done_ns - wait_ns, done_ns, communicator=0, bytes=None)
            )
        rank.cells = rank.cells[:1] + [Cell("MPI_Waitall", 0, [1_000] * len(made), communicator=0)]
        for size, durations in spent.items():
            blocked_ns = int(blocked * sum(durations))
            rank.cells += [
                Cell(name, size, [START_NS] * len(durations)),
                Cell(name, size, durations, measure="completion", blocked_ns=blocked_ns),
            ]
    return ranks


def _start(rank: Rank, name: str, sample: Sample, number: int, done_ns: int) -> None:
    start_ns, end_ns = sample.start_ns, sample.start_ns + START_NS
    if name.endswith("_init"):  # each size has an operation
        about = {"bytes": sample.bytes, "completed_ns": done_ns}
        rank.starts.append(Start(name, sample.bytes % 65_000, number, start_ns, end_ns, **about))
        rank.samples.append(Sample("MPI_Start", start_ns, end_ns, communicator=0, bytes=None))
        return
    rank.samples.append(
        replace(sample, call=name, end_ns=end_ns, completed_ns=done_ns, signature=None)
    )


def _rank(rank: int, calls: Sequence[Call], times: int, thread: int, more: dict) -> Rank:
    samples, spent, at_ns = [], {}, 0
    for call in (
        call for _ in range(times) for call in (calls[0]._replace(pause_ns=PAUSE_NS), *calls[1:])
    ):
        at_ns += call.pause_ns
        start_ns, end_ns = at_ns + rank * call.late_ns, at_ns + call.late_ns + call.transfer_ns
        sequence = len(samples) + 1
        what = {
            "sequence": sequence, "bytes": call.bytes, "thread": thread,
            "signature": call.signature,
        }
        samples.append(Sample("MPI_Allreduce", start_ns, end_ns, **what))
        spent.setdefault(call.bytes, []).append(end_ns - start_ns)
        at_ns = end_ns
    world = parallel.world(rank, RANKS)
    world.begun = [Collective("MPI_Allreduce", sample.bytes) for sample in samples]
    known = {
        "communicators": [world],
        "threads": [(0, "python3", 1), (1, "python3", 0)],
        "signatures": SIGNATURES,
        "cells": [
            Cell("MPI_Allreduce", size, durations, thread=thread)
            for size, durations in spent.items()
        ],
        "samples": samples,
        "windows": [Window(0, at_ns + 1, thread)],
        "wall_ns": at_ns + PAUSE_NS,
    }
    return Rank(rank, RANKS, **{**known, **more})
