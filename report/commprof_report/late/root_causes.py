"""Root causes of waiting: the rank that arrives last may be late only because it waited for another one.

    rank 1     | outside | waits for 3                        | transfer |    cause: rank 2, through rank 3
    rank 3     | outside | waits for 2             | transfer | arrives  |    cause: rank 2, directly
    rank 2     | outside, longer                   | transfer | ...

Both ranks of a wait, the one that waits (A) and the one that arrives last (B), are compared since they last were synchronized. The wait is
exactly what B spent more than A in all states together. It is distributed over the states in which B spent more. Outside MPI, in transfer
and in files, B is the cause. In waiting, the causes are those for which B waited longer than A; they are known, because waits are taken in
order of their end. The cause of calls that were not split, and of times without samples, is not known. After Boehme, Geimer, Wolf:
"Identifying the root causes of wait states in large-scale parallel applications" (ICPP 2010). docs/SCHEMA.md has the formulas.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import sub
from sqlite3 import Connection
from typing import NamedTuple, Optional

from ..base import query
from .timelines import FILES, OUTSIDE, TRANSFER, UNSEEN, UNSPLIT, WAITING, Timeline

SQL = query.beside(__file__)

NOT_KNOWN = None
BLOCK = 32  # waits whose causes are summed in advance
MOST_CAUSES = 16  # of one wait; smaller ones are not known
LEAST_SHARE = 0.001  # of a wait; smaller causes are not known

Causes = dict[Optional[int], float]  # nanoseconds by rank


class MeetingRow(NamedTuple):
    """A wait, or (wait is None) a collective in which all depend on all; late_meetings.sql."""

    wait: int | None
    world_rank: int | None
    last_rank: int | None
    identity: str
    start_ns: int | None
    arrival_ns: int
    wait_ns: int
    is_followed: int


class Waits:
    """One rank's waits with their causes, in order of time."""

    def __init__(self) -> None:
        self.ends: list[int] = []
        self.causes: list[Causes] = []
        self.blocks: list[Causes] = []  # sums over BLOCK waits each

    def add(self, end_ns: int, causes: Causes) -> None:
        self.ends.append(end_ns)
        self.causes.append(causes)
        if len(self.causes) % BLOCK == 0:
            self.blocks.append(_sum(self.causes[-BLOCK:]))

    def since(self, time_ns: int) -> Causes:
        first = bisect_right(self.ends, time_ns)
        block, summed = -(-first // BLOCK), len(self.blocks) * BLOCK
        if block >= len(self.blocks):
            return _sum(self.causes[first:])
        return _sum([*self.causes[first : block * BLOCK], *self.blocks[block:], *self.causes[summed:]])


class RootCauses:
    """Takes waits in order of their end."""

    def __init__(self, lines: dict[int, Timeline], communicators: dict[int, set[str]]) -> None:
        self.lines = lines
        self.communicators = communicators
        self.shared: dict[tuple[int, int], list[str]] = {}
        self.collective_ns: dict[str, int] = {}  # by communicator, when all were last synchronized
        self.pair_ns: dict[tuple[int, int], int] = {}  # when one waited for the other
        self.waits = {rank: Waits() for rank in lines}
        self.latest: tuple[int, ...] = ()
        self.of_latest: tuple[list[int], Causes] = ([], {})

    def synchronize(self, identity: str, time_ns: int) -> None:
        self.collective_ns[identity] = time_ns

    def causes(self, row: MeetingRow) -> Causes:
        waiter, last = row.world_rank, row.last_rank
        pair = (min(waiter, last), max(waiter, last))
        if row.is_followed and self.lines[waiter].state_at(row.start_ns) == WAITING:
            found = self._followed(row, self._synchronized_ns(pair))
            self.pair_ns[pair] = row.arrival_ns
        else:
            found = {last: float(row.wait_ns)}
        self.waits[waiter].add(row.arrival_ns, found)
        return found

    def _synchronized_ns(self, pair: tuple[int, int]) -> int:
        """The last time at which both ranks had arrived; the begin of the run if there is none."""
        if pair not in self.shared:
            first, second = pair
            self.shared[pair] = list(self.communicators.get(first, set()) & self.communicators.get(second, set()))
        latest_ns = max(0, self.pair_ns.get(pair, 0))
        for identity in self.shared[pair]:
            latest_ns = max(latest_ns, self.collective_ns.get(identity, 0))
        return latest_ns

    def _followed(self, row: MeetingRow, since_ns: int) -> Causes:
        late_ns, late_causes = self._of_last(row.last_rank, since_ns, row.arrival_ns)
        own_ns = self.lines[row.world_rank].between(since_ns, row.start_ns)
        more = [more_ns if more_ns > 0 else 0 for more_ns in map(sub, late_ns, own_ns)]
        direct_ns = _direct(more)
        unknown_ns, indirect_ns = more[UNSPLIT] + more[UNSEEN], more[WAITING]
        found: Causes = {row.last_rank: direct_ns} if direct_ns else {}
        found[NOT_KNOWN] = unknown_ns
        if indirect_ns:
            own = dict(self.waits[row.world_rank].since(since_ns))
            own[row.world_rank] = own.get(row.world_rank, 0.0) + max(0, _direct(own_ns) - _direct(late_ns))
            longer = {rank: caused_ns - own.get(rank, 0.0) for rank, caused_ns in late_causes.items() if caused_ns > own.get(rank, 0.0)}
            longer_ns = sum(longer.values())
            for rank, caused_ns in (longer or {NOT_KNOWN: 1.0}).items():
                found[rank] = found.get(rank, 0.0) + indirect_ns * caused_ns / (longer_ns or 1.0)
        whole_ns = direct_ns + unknown_ns + indirect_ns
        return _largest({rank: row.wait_ns * caused_ns / whole_ns for rank, caused_ns in found.items()}, row.wait_ns)

    def _of_last(self, *what: int) -> tuple[list[int], Causes]:
        """How the last rank spent its time, and the causes of its waits then. Often the same for all ranks that wait for it."""
        if what != self.latest:
            rank, since_ns, arrival_ns = what
            self.latest, self.of_latest = what, (self.lines[rank].between(since_ns, arrival_ns), self.waits[rank].since(since_ns))
        return self.of_latest


def _direct(spent_ns: list[int]) -> int:
    """The time in the states timelines.DIRECT; written out, because it is asked for each wait."""
    return spent_ns[OUTSIDE] + spent_ns[TRANSFER] + spent_ns[FILES]


def _largest(causes: Causes, wait_ns: int) -> Causes:
    """The largest causes, so that chains do not make them ever more; the rest is not known."""
    ranks = [rank for rank, caused_ns in causes.items() if rank is not NOT_KNOWN and caused_ns >= LEAST_SHARE * wait_ns]
    chosen = {rank: causes[rank] for rank in sorted(ranks, key=lambda rank: -causes[rank])[:MOST_CAUSES]}
    rest_ns = wait_ns - sum(chosen.values())
    return {**chosen, NOT_KNOWN: rest_ns} if rest_ns >= 1 else chosen


def _sum(parts: Iterable[Causes]) -> Causes:
    total: Causes = {}
    for part in parts:
        for rank, caused_ns in part.items():
            total[rank] = total.get(rank, 0.0) + caused_ns
    return total


def root_causes(connection: Connection, lines: dict[int, Timeline]) -> None:
    """Fills the TEMP TABLE late_cause from late_call."""
    SQL.run(connection, "late_cause")
    communicators: dict[int, set[str]] = {}
    for rank, identity in connection.execute("SELECT DISTINCT world_rank, identity FROM late_call"):
        communicators.setdefault(rank, set()).add(identity)
    connection.executemany("INSERT INTO late_cause VALUES (?, ?, ?)", _rows(connection, RootCauses(lines, communicators)))
    SQL.run(connection, "late_cause_index")


def _rows(connection: Connection, causes: RootCauses) -> Iterator[tuple[int, int | None, float]]:
    for row in map(MeetingRow._make, SQL.run(connection, "late_meetings")):
        if row.wait is None:
            causes.synchronize(row.identity, row.arrival_ns)
        else:
            for rank, caused_ns in causes.causes(row).items():
                yield row.wait, rank, caused_ns
