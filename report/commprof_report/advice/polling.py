"""Calls that looked for something and found nothing. The saving from fewer of them is unknown: the
program may only be waiting in them."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..calls.by_call import PollRow, poll_rows
from .findings import MANY, POSSIBLE, Finding, Unknown, background, is_notable_time
from .inputs import Inputs


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    rows = poll_rows(inputs.run.connection)
    if rows and inputs.is_beside_main_mostly:
        yield background(inputs)
        return
    for row in rows:
        if row.polls >= MANY * inputs.ranks and is_notable_time(row.poll_ns, inputs):
            yield _polls(row, inputs)


def _polls(row: PollRow, inputs: Inputs) -> Finding:
    often = "finds nothing most of the time" if row.polls > row.found else "often finds nothing"
    return Finding(
        f"{row.call} {often}",
        f"{units.count(row.polls)} of {units.count(row.polls + row.found)} calls found nothing and "
        f"took {inputs.per_rank(row.poll_ns)}",
        "look less often where there is other work to do; where there is none, MPI_Wait or "
        "MPI_Probe takes as long. Polling makes progress too, so measure before and after",
        POSSIBLE, call=row.call,
    )
