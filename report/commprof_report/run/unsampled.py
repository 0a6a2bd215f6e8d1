"""Communicators that have no samples because the sample log was full, so that reports based on samples do not include them.

Not reported for a job without a log (COMMPROF_SAMPLES=0).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..base import query, units
from .selection import Selection

SQL = query.beside(__file__)

MOST_NAMES = 3
HEAD = "No samples"


class UnsampledRow(NamedTuple):
    communicator: str
    total_ns: int
    share: float | None
    communicators: int  # number of all communicators with collectives


def unsampled_text(run: Selection) -> str:
    """A sentence for a run read with or without samples; "": all communicators have some."""
    rows = SQL.ask(run.connection, "unsampled", UnsampledRow)
    if not rows:
        return ""
    names = ", ".join(units.shortened(row.communicator, 32) for row in rows[:MOST_NAMES])
    more = f" and {len(rows) - MOST_NAMES} more" if len(rows) > MOST_NAMES else ""
    share = units.share(sum(row.share or 0 for row in rows))
    return f"{len(rows)} of {units.counted(rows[0].communicators, 'communicator')}, {share} of the time in collectives: {names}{more}"


def unsampled_facts(run: Selection) -> Iterator[tuple[str, str]]:
    text = unsampled_text(run)
    if text:
        yield HEAD, text
