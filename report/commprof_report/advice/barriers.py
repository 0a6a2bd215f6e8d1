"""Barriers: the time in them that is not waiting for late ranks."""

from __future__ import annotations

from collections.abc import Iterator

from . import changes
from .findings import POSSIBLE, Finding, calls_take, ran_once, waiting_text
from .inputs import Inputs

BARRIERS = ("MPI_Barrier", "MPI_Ibarrier", "MPI_Barrier_init")


def find(inputs: Inputs) -> Iterator[Finding]:
    for row in inputs.answers.calls:
        if row.call in BARRIERS and not ran_once(row.count, inputs):
            time_ns = max(row.total_ns, row.blocked_ns or 0)  # nonblocking ones are waited for
            waiting = inputs.waiting([row.call], time_ns)
            yield Finding(
                f"{row.call} costs time",
                f"{calls_take(row.count)} {inputs.per_rank(time_ns)}{waiting_text(waiting)}",
                "leave out those that nothing needs: collectives and messages order themselves; "
                "what ranks wait here for a late one they may then wait elsewhere",
                POSSIBLE, time_ns * (1 - (waiting or 0)), row.call,
                change=changes.shorter(
                    inputs, changes.chosen(inputs, [row.call], inputs.labels), 0.0
                ),
            )
