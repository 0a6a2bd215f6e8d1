"""The wait split: which rank arrived last in each sampled collective and message, and how long the others waited for it.

This is the only analysis of waiting: every statement about waiting and late ranks is derived from it.

A rank waits from its own arrival until the last rank that it depends on arrives: all ranks in Allreduce, Allgather, Alltoall,
Reduce_scatter and Barrier; the root in Bcast and Scatter; all others at the root of Reduce and Gather; the lower ranks in Scan. The rest
of its call is transfer. If the clock error may exceed half the median duration of such a call, arrival times are not used. Then the rank
with the shortest call is assumed to have arrived last, and the excess of the other calls over it is waiting.

A rank waits for a nonblocking or persistent collective or message in the call that completes it (Wait, Test): from the entry of that call
until the last rank has started the collective, or the other side has posted the message. One call may complete several operations; the
one that is ready last decides (arrivals.py).

A rank arrives in an NCCL collective when its kernel starts, and leaves when the kernel ends; the call on the host shows neither. NCCL
collectives without device times are therefore skipped.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..run.alignment import Alignment, Error, storable
from ..run.selection import Selection
from .arrivals import NO_SHARE, Arrival, Completions, Operation, Share, chosen, share, waited
from .messages import messages_add

SQL = query.beside(__file__)

AT_ONCE = 10_000  # rows for each executemany
SECOND_LOG2 = 30  # 2^30 ns are about one second
NO_ERROR = Error(0, 0)
INSERT = "INSERT INTO late_call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class CollectiveRow(NamedTuple):
    """One rank's sample of a collective, or of the start of a persistent one; sampled_collectives.sql."""

    identity: str
    sequence: int
    members: int
    world_rank: int
    call: str
    kind: str
    wait_state: str
    is_blocking: int
    bytes: int | None
    is_root: int
    region: str
    start_ns: int
    end_ns: int
    completed_ns: int | None
    library: str


class WaitSplit(NamedTuple):
    """The split of a run's collectives and messages, whatever the user chose. Owns the TEMP TABLE late_call; the next split of the run
    replaces it."""

    error_ns: float  # the largest clock error among the collectives split by arrival times
    unsure: int  # chosen ones not split: clocks too inaccurate and durations no substitute, or the root was not read
    uncompleted: int  # chosen nonblocking or persistent ones not split: the call that completed them is not sampled
    unmatched: int  # chosen messages not split, each side's counted: their other side is not known
    unnumbered: int  # receives among them that have no number


def wait_split(run: Selection, alignment: Alignment) -> WaitSplit:
    """The run must have been opened with samples."""
    connection = run.connection
    SQL.run(connection, "wait_split")
    clocks, is_chosen = Clocks(connection, alignment), chosen(connection)
    calls: list[tuple] = []
    completions = Completions()
    unsure = 0
    for rows in _collectives(connection):
        starts = [alignment.aligned_ns(row.world_rank, row.start_ns) for row in rows]
        is_estimate = not clocks.resolves_collective(rows)
        if (is_estimate and not rows[0].is_blocking) or (rows[0].kind != "all" and (is_estimate or not _has_root(rows))):
            unsure += is_chosen(rows[0].call, rows[0].identity)
            continue
        if not rows[0].is_blocking:
            for row, arrival in _arrivals(rows, starts):
                completions.add(row.world_rank, row.completed_ns, arrival)
            continue
        calls += _split(rows, starts, is_estimate)
        if len(calls) >= AT_ONCE:
            _insert(connection, calls)
    _insert(connection, calls)
    counts = messages_add(completions, connection, alignment, clocks)
    connection.executemany(INSERT, completions.rows(connection, alignment))
    uncompleted = counts.uncompleted + completions.left(is_chosen)
    return WaitSplit(clocks.error_ns, unsure + counts.unsure, uncompleted, counts.unmatched, counts.unnumbered)


def _collectives(connection: Connection) -> Iterator[list[CollectiveRow]]:
    """Collectives in which every member that was read has a sample, and all samples are of the same call."""
    for _, group in groupby(map(CollectiveRow._make, SQL.run(connection, "sampled_collectives")), key=itemgetter(0, 1)):
        rows = list(group)
        if len(rows) == rows[0].members > 1 and len({row.call for row in rows}) == 1:
            yield rows


class Clocks:
    """Decides whether the clocks of a communicator's ranks are accurate enough to split its calls."""

    def __init__(self, connection: Connection, alignment: Alignment) -> None:
        self.alignment = alignment
        self.medians: dict[tuple[str, str], int] = {}
        self.errors: dict[tuple[Hashable, int], Error] = {}  # by communicator or pair of ranks, and second
        self.error_ns = 0.0
        self.device_errors: dict[int, float] = {}  # by rank
        has_nccl = connection.execute("SELECT 1 FROM communicator WHERE library = 'nccl'").fetchone()
        if has_nccl:
            errors = SQL.run(connection, "device_clocks")
            self.device_errors = {rank: math.inf if error_ns is None else error_ns for rank, error_ns in errors}
        if has_nccl or len(alignment.clocks) > 1 or any(clock.violation_ns for clock in alignment.clocks.values()):
            rows = SQL.run(connection, "median_durations")
            self.medians = {(identity, call): median_ns for identity, call, median_ns in rows}

    def error(self, key: Hashable, ranks: Iterable[int], time_ns: int) -> Error:
        """Of these ranks' times, near a time of the first of them. key: stands for the ranks."""
        if not self.medians:
            return NO_ERROR
        at = (key, time_ns >> SECOND_LOG2)
        if at not in self.errors:
            self.errors[at] = self.alignment.error(list(ranks), time_ns)
        return self.errors[at]

    def resolves(self, identity: str, call: str, error: Error) -> bool:
        """True if the error is at most half the median duration. Half, because a host that is late by the same amount in all calls looks
        like a host whose clock is off, and causes an error of half the wait."""
        if 2 * error.timestamp_ns > self.medians.get((identity, call), 0):
            return False
        self.error_ns = max(self.error_ns, error.distance_ns)
        return True

    def resolves_collective(self, rows: Sequence[CollectiveRow]) -> bool:
        first = rows[0]
        error = self.error(first.identity, (row.world_rank for row in rows), first.start_ns)
        return self.resolves(first.identity, first.call, error if first.library == "mpi" else self._with_devices(error, rows))

    def _with_devices(self, error: Error, rows: Sequence[CollectiveRow]) -> Error:
        device_ns = max(self.device_errors.get(row.world_rank, math.inf) for row in rows)
        return Error(error.timestamp_ns + device_ns, error.distance_ns + 2 * device_ns)


def _arrivals(rows: Sequence[CollectiveRow], starts: Sequence[int]) -> Iterator[tuple[CollectiveRow, Arrival]]:
    """Of a nonblocking collective, what each rank's completion depends on; nothing for a rank that depends on nobody."""
    kind = rows[0].kind
    for own, row in enumerate(rows):
        if (kind == "root-first" and row.is_root) or (kind == "root-last" and not row.is_root) or row.completed_ns is None:
            continue
        depends_on = [_root(rows)] if kind == "root-first" else range(own if kind == "lower" else len(rows))
        others = [other for other in depends_on if other != own]
        if others:
            last = max(others, key=starts.__getitem__)
            without_ns = max((starts[other] for other in range(len(rows)) if other != last), default=starts[own])
            operation = Operation(row.identity, row.sequence, row.call, row.bytes, row.wait_state)
            is_last = kind == "all" and starts[own] > starts[last]
            yield row, Arrival(operation, starts[last], min(without_ns, starts[last]), rows[last].world_rank, is_last)


def _split(rows: Sequence[CollectiveRow], starts: Sequence[int], is_estimate: bool) -> Iterator[tuple]:
    """Rows of late_call. Timestamps are aligned; durations are from each rank's own clock."""
    durations = [row.end_ns - row.start_ns for row in rows]
    shares = _by_duration(rows, durations) if is_estimate else SHARES[rows[0].kind](rows, starts, durations)
    waited_for = {found.last_rank for found in shares}
    for row, start_ns, duration_ns, (wait_ns, alone_ns, last_rank) in zip(rows, starts, durations, shares):
        start_ns = storable(start_ns)
        what = (row.identity, row.sequence, row.world_rank, row.call, row.bytes, row.region, start_ns, start_ns + duration_ns)
        waiting = (wait_ns, duration_ns - wait_ns, alone_ns, last_rank, row.world_rank in waited_for, is_estimate)
        yield (*what, *waiting, None, row.wait_state if wait_ns else None, None, None)


def _by_duration(rows: Sequence[CollectiveRow], durations: Sequence[int]) -> list[Share]:
    shortest, next_shortest = sorted(durations)[:2]
    last_rank = rows[durations.index(shortest)].world_rank
    return [Share(spent - shortest, spent - shortest - max(0, spent - next_shortest), last_rank) for spent in durations]


def _all(rows: Sequence[CollectiveRow], starts: Sequence[int], durations: Sequence[int]) -> list[Share]:
    before_last, last = sorted(starts)[-2:]
    last_rank = rows[starts.index(last)].world_rank
    return [share(start, spent, last, before_last, last_rank) for start, spent in zip(starts, durations)]


def _root_first(rows: Sequence[CollectiveRow], starts: Sequence[int], durations: Sequence[int]) -> list[Share]:
    root = _root(rows)
    others = max(start for place, start in enumerate(starts) if place != root)
    return [waited(share(start, spent, starts[root], others, rows[root].world_rank)) for start, spent in zip(starts, durations)]


def _root_last(rows: Sequence[CollectiveRow], starts: Sequence[int], durations: Sequence[int]) -> list[Share]:
    root = _root(rows)
    *others, (last, last_rank) = sorted((start, row.world_rank) for row, start in zip(rows, starts) if not row.is_root)
    before_last = others[-1][0] if others else starts[root]
    shares = [NO_SHARE] * len(rows)
    shares[root] = waited(share(starts[root], durations[root], last, before_last, last_rank))
    return shares


def _lower(rows: Sequence[CollectiveRow], starts: Sequence[int], durations: Sequence[int]) -> list[Share]:
    shares = [NO_SHARE]
    last, before_last, last_rank = starts[0], min(starts), rows[0].world_rank
    for row, start, spent in zip(rows[1:], starts[1:], durations[1:]):
        shares.append(waited(share(start, spent, last, max(start, before_last), last_rank)))
        if start > last:
            last, before_last, last_rank = start, last, row.world_rank
        else:
            before_last = max(before_last, start)
    return shares


def _has_root(rows: Sequence[CollectiveRow]) -> bool:
    """False if the root was not read, or if ranks named different roots."""
    return rows[0].kind == "lower" or sum(row.is_root for row in rows) == 1


def _root(rows: Sequence[CollectiveRow]) -> int:
    return next(place for place, row in enumerate(rows) if row.is_root)


SHARES = {"all": _all, "root-first": _root_first, "root-last": _root_last, "lower": _lower}


def _insert(connection: Connection, calls: list[tuple]) -> None:
    connection.executemany(INSERT, calls)
    calls.clear()
