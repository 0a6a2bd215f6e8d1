"""Jobs of two ranks that pause and then call collectives, one directly after the other, all
sampled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import parallel
from planted import Cell, Collective, Negotiation, Rank, Sample, Signature, Window, facts_of

RANKS, STEPS, PAUSE_NS, BETWEEN_NS = 2, 100, 20_000_000, 2_000
GRADIENT, BITS = 1, 2
SIGNATURES = [
    Signature(GRADIENT, op="MPI_SUM"),
    Signature(BITS, "MPI_LONG_LONG", 8, 8, 1, 1, "MPI_BAND"),
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
    """Runs of Allreduces. thread 1: beside the main one. Calls of bits are rounds; those that
    follow agree on a tensor."""
    return [_rank(rank, calls, times, thread, more) for rank in range(RANKS)]


def _rank(rank: int, calls: Sequence[Call], times: int, thread: int, more: dict) -> Rank:
    samples, spent, at_ns = [], {}, 0
    made = [*(calls[0]._replace(pause_ns=PAUSE_NS), *calls[1:]) * times]
    idle_ns = [
        later.pause_ns + later.transfer_ns
        for call, later in zip(made, made[1:])
        if call.signature == later.signature == BITS and later.pause_ns < PAUSE_NS
    ]
    for call, later in zip(made, [*made[1:], None]):
        at_ns += call.pause_ns
        start_ns, end_ns = at_ns + rank * call.late_ns, at_ns + call.late_ns + call.transfer_ns
        sequence = len(samples) + 1
        what = {
            "sequence": sequence,
            "bytes": call.bytes,
            "thread": thread,
            "signature": call.signature,
        }
        if call.signature == BITS:
            sends = later is not None and later.signature != BITS
            what["agreement"] = (int(sends),) * 2
        samples.append(Sample("MPI_Allreduce", start_ns, end_ns, **what))
        spent.setdefault(call.bytes, []).append(end_ns - start_ns)
        at_ns = end_ns
    world = parallel.world(rank, RANKS)
    world.begun = [Collective("MPI_Allreduce", sample.bytes) for sample in samples]
    rounds = sum(call.signature == BITS for call in made)
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
        "facts": {**facts_of(rank), "command_line": f"train --steps {times}"},
        "negotiations": [Negotiation(rounds, idle=(len(idle_ns), sum(idle_ns)))] * bool(rounds),
    }
    return Rank(rank, RANKS, **{**known, **more})
