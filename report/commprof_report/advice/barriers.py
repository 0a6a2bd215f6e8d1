"""Barriers: the time in them that is not waiting for late ranks."""

from __future__ import annotations

from collections.abc import Iterator

from .findings import POSSIBLE, Finding, calls_take, waiting_text
from .inputs import Inputs


def find(inputs: Inputs) -> Iterator[Finding]:
    for row in inputs.answers.calls:
        if row.call == "MPI_Barrier":
            waiting = inputs.waiting([row.call], row.total_ns)
            yield Finding(
                "MPI_Barrier costs time",
                f"{calls_take(row.count)} {inputs.per_rank(row.total_ns)}{waiting_text(waiting)}",
                "leave out those that nothing needs: collectives and messages order themselves; "
                "what ranks wait here for a late one they may then wait elsewhere",
                POSSIBLE, row.total_ns * (1 - (waiting or 0)), row.call,
            )
