"""Communicators that have no samples because the sample log was full, so that reports based on
samples do not include them; and runs that have no sample log."""

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Connection

from ..base import query, units
from .selection import Selection

SQL = query.beside(__file__)

MOST_NAMES = 3
HEAD = "No samples"


def unsampled_text(run: Selection) -> str:
    """A sentence for a run read with or without samples; "": all communicators have some."""
    rows = list(SQL.rows(run.connection, "unsampled"))
    if not rows:
        return ""
    names = ", ".join(units.shortened(row.communicator, 32) for row in rows[:MOST_NAMES])
    more = f" and {len(rows) - MOST_NAMES} more" if len(rows) > MOST_NAMES else ""
    share = units.share(sum(row.share or 0 for row in rows))
    return (
        f"{len(rows)} of {units.counted(rows[0].communicators, 'communicator')}, {share} " "of the "
        f"time in collectives: {names}{more}"
    )


def unsampled_facts(run: Selection) -> Iterator[tuple[str, str]]:
    text = unsampled_text(run)
    if text:
        yield HEAD, text


def no_log_text(connection: Connection) -> str:
    """Why a run has no samples at all, and what samples its calls; "": it has a sample log, or its
    facts say nothing of it."""
    found = connection.execute(
        "SELECT DISTINCT value FROM fact WHERE key = 'settings.COMMPROF_SAMPLES'"
    ).fetchall()
    if found != [("0",)]:
        return ""
    is_site = connection.execute(
        "SELECT 1 FROM fact WHERE key = 'settings.COMMPROF_PROFILE' AND value = 'site'"
    ).fetchone()
    why = ", the default of COMMPROF_PROFILE=site" if is_site else ""
    return (
        f"no single call was sampled: COMMPROF_SAMPLES=0{why}; commprof-run --samples 4M "
        "samples them"
    )
