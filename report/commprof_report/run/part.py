"""The part of a job that a run has: what its statements rest on, above all those that something is not there."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from .selection import Selection

NOTABLE = 0.005  # of the ranks' time
MOST_EXCLUDED = 40  # characters
TIMES = "SELECT count(*), total(counted_ns), total(wall_ns) FROM rank_wall"
EXCLUDED = "SELECT DISTINCT value FROM fact WHERE key = 'settings.COMMPROF_EXCLUDE' AND value <> '' ORDER BY value"


def part_text(run: Selection) -> str:
    """2 of 4 ranks; calls of 15.0 % of their time; without Test, Iprobe (COMMPROF_EXCLUDE); calls selected by --call. "": all."""
    return "; ".join(filter(None, [recorded_text(run), f"calls selected by {', '.join(run.filters)}" if run.filters else ""]))


def part_facts(run: Selection) -> Iterator[tuple[str, str]]:
    if text := part_text(run):
        yield "Based on", text


def recorded_text(run: Selection) -> str:
    """The same, whatever was selected."""
    (ranks, counted_ns, wall_ns), excluded = run.connection.execute(TIMES).fetchone(), run.connection.execute(EXCLUDED).fetchall()
    said = [f"{units.count(ranks)} of {units.counted(run.world_size, 'rank')}"] if ranks < run.world_size else []
    if counted_ns < (1 - NOTABLE) * wall_ns:
        said.append(f"calls of {units.share(counted_ns / wall_ns)} of the time")
    if excluded:
        said.append(f"without {units.shortened(', '.join(calls for (calls,) in excluded), MOST_EXCLUDED)} (COMMPROF_EXCLUDE)")
    return "; ".join(said)
