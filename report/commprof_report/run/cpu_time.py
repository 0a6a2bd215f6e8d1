"""Time on a core: how long each rank was on one, waited for one, or was blocked, outside MPI and
inside.

The kernel counts time on a core and time waiting for one exactly, outside MPI and inside together;
the rest of the time a thread is blocked. How much of that is outside is known from readings, some
ten a second, that find a thread blocked outside MPI or inside, and from how long it was there at
all. How often a thread is found blocked says less: on a crowded host the thread that reads gets a
core when others leave theirs. docs/METHODS.md has the formulas.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from math import sqrt
from sqlite3 import Connection
from statistics import fmean
from typing import NamedTuple

from ..base import query
from ..base.thresholds import threshold

SQL = query.beside(__file__)

READ = threshold("run.core-read")
ERRORS = threshold("run.core-errors")


# A rank's main thread, or all its threads that call MPI if that does not; cpu_time.sql.
CpuTimeRow = namedtuple(
    "CpuTimeRow",
    "rank read_ns core_ns core_wait_ns outside_ready outside_asleep outside_disk "
    "inside_ready inside_asleep inside_disk inside_ns outside_ns is_of_main",
)


class Use(NamedTuple):
    """The use of cores by some ranks: means in ns over the counted time, and readings that found
    them blocked."""

    outside_ns: float
    inside_ns: float
    core_ns: float
    core_wait_ns: float
    outside_blocked: float
    outside_disk: float  # of outside_blocked
    inside_blocked: float
    # of the time blocked, outside MPI, if no reading finds any; None: as of all time
    unread_share: float | None = None

    @property
    def counted_ns(self) -> float:
        return self.outside_ns + self.inside_ns

    @property
    def wait_rate(self) -> float:
        """The share of the time ready in which they wait for a core, outside MPI as inside."""
        return self.core_wait_ns / ((self.core_ns + self.core_wait_ns) or 1)

    @property
    def blocked_ns(self) -> float:
        """Outside MPI."""
        if readings := self.outside_blocked + self.inside_blocked:
            return self._blocked_ns(self.outside_blocked / readings)
        share = self.outside_ns / (self.counted_ns or 1)
        return self._blocked_ns(share if self.unread_share is None else self.unread_share)

    @property
    def ready_ns(self) -> float:
        """Outside MPI, on a core or waiting for one."""
        return self.outside_ns - self.blocked_ns

    @property
    def outside_wait_ns(self) -> float:
        """Waiting for a core outside MPI."""
        return self.ready_ns * self.wait_rate

    @property
    def blocked_bounds_ns(self) -> tuple[float, float]:
        low, high = share_bounds(self.outside_blocked, self.outside_blocked + self.inside_blocked)
        return self._blocked_ns(low), self._blocked_ns(high)

    @property
    def ready_bounds_ns(self) -> tuple[float, float]:
        low, high = self.blocked_bounds_ns
        return self.outside_ns - high, self.outside_ns - low

    def _blocked_ns(self, share: float) -> float:
        """This share of the time blocked: no more than they were outside MPI, nor was more of it
        inside than they were there."""
        blocked_ns = max(0.0, self.counted_ns - self.core_ns - self.core_wait_ns)
        least_ns = max(0.0, blocked_ns - self.inside_ns)
        return max(least_ns, min(share * blocked_ns, self.outside_ns))


def share_bounds(found: float, readings: float) -> tuple[float, float]:
    """Wilson's interval of a share, ERRORS standard errors wide to both sides."""
    if not readings:
        return 0.0, 1.0
    share, square = found / readings, ERRORS * ERRORS / readings
    middle = share + square / 2
    reach = ERRORS * sqrt(share * (1 - share) / readings + square / readings / 4)
    return max(0.0, (middle - reach) / (1 + square)), min(1.0, (middle + reach) / (1 + square))


def cpu_times(connection: Connection) -> dict[int, CpuTimeRow]:
    """By rank: those of which time waiting for a core is known, over most of their time."""
    rows = SQL.ask(connection, "cpu_time", CpuTimeRow)
    return {row.rank: row for row in rows if row.core_wait_ns is not None and is_read(row)}


def is_read(row: CpuTimeRow) -> bool:
    return row.read_ns >= READ * (row.inside_ns + row.outside_ns)


def use_of(rows: Sequence[CpuTimeRow]) -> Use:
    """The readings are scaled to all counted time."""
    return Use(
        _mean(row.outside_ns for row in rows),
        _mean(row.inside_ns for row in rows),
        _mean(row.core_ns * _scale(row) for row in rows),
        _mean((row.core_wait_ns or 0) * _scale(row) for row in rows),
        sum(row.outside_asleep + row.outside_disk for row in rows),
        sum(row.outside_disk for row in rows),
        sum(row.inside_asleep + row.inside_disk for row in rows),
    )


def _scale(row: CpuTimeRow) -> float:
    """The kernel counts a wait when it is over: one may have begun before the first reading."""
    ready_ns = row.core_ns + (row.core_wait_ns or 0)
    return (row.inside_ns + row.outside_ns) / (max(row.read_ns, ready_ns) or 1)


def _mean(numbers: Iterable[float]) -> float:
    known = list(numbers)
    return fmean(known) if known else 0.0
