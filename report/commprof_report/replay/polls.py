"""How long a thread did something else between polls that found nothing.

Of those before a call that found something a profile has the begin of the first one and the time
inside all, not their number. The time that such a poll takes on average tells it.
"""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection

from ..base.gather import gathered
from ..base.thresholds import threshold
from .run_calls import Row

LOOP_NS = threshold("replay.polls")


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
        mean_ns = self.mean_ns.get((row.rank, row.thread, row.call), 0)
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
