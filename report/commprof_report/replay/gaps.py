"""A thread in the gaps between its calls: whether it slept, by readings of whether it was on a core
(table cpu_time), and how long it did something else between polls that found nothing.

A reading falls into one gap. Those before the same call of the kit are taken together: a loop has
many such gaps, and a reading finds few of them. Of polls before a call that found something a
profile has the begin of the first one and the time inside all, not their number. The time that such
a poll takes on average tells it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ..base.columns import np
from ..base.gather import gathered
from ..base.thresholds import threshold
from .run_calls import Row

FEWEST_READINGS = 10  # a second of them; fewer say little
LOOP_NS = threshold("replay.polls")


class Reading(NamedTuple):
    at_ns: int  # since the rank's start
    is_away: bool  # asleep, or at a disk; else on a core, or waiting for one


class Sleep:
    """Readings of each thread, by rank and thread, that found it outside MPI."""

    def __init__(self, connection: Connection) -> None:
        of_thread = gathered(
            ((rank, thread), tuple(row)) for rank, thread, *row in connection.execute(
                "SELECT world_rank, thread, at_ns, outside_ready, outside_asleep + outside_disk,"
                " inside_ready + inside_asleep + inside_disk FROM cpu_time ORDER BY 1, 2, 3"
            )
        )
        self.sums = {  # ready, away
            place: (rows[-1][1] - rows[0][1], rows[-1][2] - rows[0][2])
            for place, rows in of_thread.items()
        }
        self.readings = {
            place: list(filter(None, map(_reading, rows, rows[1:])))
            for place, rows in of_thread.items()
        }

    def calls_of(
        self, place: tuple[int, int], ends_ns: Sequence[int], starts_ns: Sequence[int],
        calls: Sequence[int],
    ) -> set[int]:
        """The calls before which a thread mostly slept, of those that begin at `starts_ns`, each
        after the end of the one before. Of a call with few readings all of the thread's decide."""
        seen: Counter[tuple[int, bool]] = Counter()
        readings = self.readings.get(place, [])
        following = np.searchsorted(starts_ns, [reading.at_ns for reading in readings])
        for reading, at in zip(readings, following.tolist()):
            if at < len(calls) and reading.at_ns > ends_ns[at]:
                seen[calls[at], reading.is_away] += 1
        is_thread = _is_asleep(*self.sums.get(place, (0, 0))) or False
        found = {call: _is_asleep(seen[call, False], seen[call, True]) for call in set(calls)}
        return {call for call, is_away in found.items() if is_away or is_away is None and is_thread}


def _is_asleep(ready: int, away: int) -> bool | None:
    """None: too few readings."""
    return away > ready if ready + away >= FEWEST_READINGS else None


def _reading(before: tuple[int, ...], row: tuple[int, ...]) -> Reading | None:
    """The last of the readings that were taken since the row before. Where some have been thinned,
    it is known if all found the same, which leans to what the thread mostly does."""
    ready, away, inside = (now - then for now, then in zip(row[1:], before[1:]))
    is_known = not inside and (ready > 0) != (away > 0)
    return Reading(row[0], away > 0) if is_known else None


class Polls:
    def __init__(self, connection: Connection) -> None:
        self.mean_ns = {
            tuple(place): total_ns / count
            for *place, total_ns, count in connection.execute(
                "SELECT world_rank, thread, call, SUM(total_ns), SUM(count) FROM cell"
                " WHERE measure = 'poll' GROUP BY 1, 2, 3"
            )
        }

    def pauses(self, rows: Iterable[Row]) -> dict[str, int]:
        """Nanoseconds between the polls of a thread that waits in a loop, by call: half of them
        came after less."""
        found = gathered(
            (row.call, (self._pause_ns(row), self._number(row))) for row in rows if self.waits(row)
        )
        return {name: int(_median(pauses)) for name, pauses in found.items()}

    def gap_ns(self, row: Row, before_ns: int) -> int:
        """From the end of the call before to this one, or to the first poll of a loop."""
        gap_ns = max(0, row.start_ns - before_ns)
        if not self.waits(row):
            return gap_ns
        since_ns = (row.polled_since_ns or 0) - before_ns
        # the call before is one of the loop
        return since_ns if since_ns >= 0 else min(gap_ns, int(self._pause_ns(row)))

    def _number(self, row: Row) -> float:
        mean_ns = self.mean_ns.get((row.world_rank, row.thread, row.call), 0)
        return max(1, (row.polled_ns or 0) / mean_ns) if mean_ns else 1

    def _pause_ns(self, row: Row) -> float:
        away_ns = row.start_ns - (row.polled_since_ns or 0) - (row.polled_ns or 0)
        return max(0, away_ns) / self._number(row)

    def waits(self, row: Row) -> bool:
        """In a loop; a thread that polls now and then computes between."""
        return row.polled_since_ns is not None and self._pause_ns(row) < LOOP_NS


def _median(weighted: list[tuple[float, float]]) -> float:
    weighted = sorted(weighted)
    half = sum(weight for _, weight in weighted) / 2
    for value, weight in weighted:
        half -= weight
        if half <= 0:
            return value
    return weighted[-1][0]
