"""Communicators that have no samples because the log of single calls was full: what reports from samples do not know of.

Nothing is said of a job without a log (COMMPROF_SAMPLES=0).
"""

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from . import query, units

MOST_NAMES = 3
HEAD = "No samples"


class UnsampledRow(NamedTuple):
    communicator: str
    total_ns: int
    share: float | None
    communicators: int  # with collectives, all in all


def unsampled_text(connection: Connection) -> str:
    """Of a run on which selection.select() was called, read with samples or without; "": all communicators have some."""
    rows = query.ask(connection, "unsampled", UnsampledRow)
    if not rows:
        return ""
    names = ", ".join(units.shortened(row.communicator, 32) for row in rows[:MOST_NAMES])
    more = f" and {len(rows) - MOST_NAMES} more" if len(rows) > MOST_NAMES else ""
    share = units.share(sum(row.share or 0 for row in rows))
    return f"{len(rows)} of {units.counted(rows[0].communicators, 'communicator')}, {share} of the time in collectives: {names}{more}"


def unsampled_facts(connection: Connection) -> Iterator[tuple[str, str]]:
    text = unsampled_text(connection)
    if text:
        yield HEAD, text
