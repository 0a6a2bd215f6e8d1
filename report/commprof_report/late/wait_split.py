"""The wait split: which rank arrived last in each sampled collective, and how long the others waited for it.

This is the only analysis of waiting: every statement about waiting and late ranks is derived from it.

A rank waits from its own arrival until the last rank that it depends on arrives: all ranks in Allreduce, Allgather, Alltoall,
Reduce_scatter and Barrier; the root in Bcast and Scatter; all others at the root of Reduce and Gather; the lower ranks in Scan. The rest
of its call is transfer. If the clock error may exceed half the median duration of such a call, arrival times are not used. Then the rank
with the shortest call is assumed to have arrived last, and the excess of the other calls over it is waiting.

A rank waits for a nonblocking or persistent collective in the call that completes it (Wait, Test): from the entry of that call until the
last rank has started the collective. One call may complete several; the collective that is ready last decides.

A rank arrives in an NCCL collective when its kernel starts, and leaves when the kernel ends; the call on the host shows neither. NCCL
collectives without device times are therefore skipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..run.alignment import Alignment, Error, storable
from ..run.selection import Selection

SQL = query.beside(__file__)

AT_ONCE = 10_000  # rows for each executemany
SECOND_LOG2 = 30  # 2^30 ns are about one second
NO_ERROR = Error(0, 0)


class KeptRow(NamedTuple):
    """One rank's sample of a collective; kept_collectives.sql."""

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


class Completion(NamedTuple):
    """A call that completed collectives; completions.sql."""

    world_rank: int
    call: str
    start_ns: int
    end_ns: int


class Arrival(NamedTuple):
    """What the completion of a collective on one rank depends on, as aligned timestamps."""

    row: KeptRow
    last_ns: int
    without_ns: int  # the last arrival of any other rank than last_rank
    last_rank: int
    is_last: bool  # the rank itself started last


class Share(NamedTuple):
    """How long a rank waited, for which rank, and how much of that is due to that rank alone."""

    wait_ns: int
    alone_ns: int
    last_rank: int | None


class WaitSplit(NamedTuple):
    """The split of a run's collectives. Owns the TEMP TABLE late_call; the next split of the run replaces it."""

    connection: Connection
    error_ns: float  # the largest clock error among the collectives split by arrival times
    unsure: int  # collectives not split: clocks too inaccurate and durations no substitute, or the root was not read
    uncompleted: int  # nonblocking collectives not split: the call that completed them is not sampled

    def waits(self) -> Iterator[tuple[int, int, int]]:
        """Each rank's waits in order of time: the rank, the start of its call, the time waited."""
        return SQL.run(self.connection, "waits")


NO_SHARE = Share(0, 0, None)


def wait_split(run: Selection, alignment: Alignment) -> WaitSplit:
    """The run must have been opened with samples."""
    connection = run.connection
    SQL.run(connection, "wait_split")
    clocks = Clocks(connection, alignment)
    calls: list[tuple] = []
    started: dict[tuple[int, int], list[Arrival]] = {}  # by rank and completion
    unsure = 0
    for rows in _collectives(connection):
        starts = [alignment.moment(row.world_rank, row.start_ns) for row in rows]
        is_estimate = not clocks.tell(rows)
        if (is_estimate and not rows[0].is_blocking) or (rows[0].kind != "all" and (is_estimate or not _has_root(rows))):
            unsure += 1
            continue
        if not rows[0].is_blocking:
            for arrival in _arrivals(rows, starts):
                started.setdefault((arrival.row.world_rank, arrival.row.completed_ns or 0), []).append(arrival)
            continue
        calls += _split(rows, starts, is_estimate)
        if len(calls) >= AT_ONCE:
            _insert(connection, calls)
    for completion in map(Completion._make, SQL.run(connection, "completions")):
        arrivals = started.pop((completion.world_rank, completion.end_ns), [])
        if arrivals:
            calls.append(_completion_row(completion, alignment.moment(completion.world_rank, completion.start_ns), arrivals))
    _insert(connection, calls)
    return WaitSplit(connection, clocks.error_ns, unsure, len(started))


def _collectives(connection: Connection) -> Iterator[list[KeptRow]]:
    """Collectives in which every member that was read has a sample, and all samples are of the same call."""
    for _, group in groupby(map(KeptRow._make, SQL.run(connection, "kept_collectives")), key=itemgetter(0, 1)):
        rows = list(group)
        if len(rows) == rows[0].members > 1 and len({row.call for row in rows}) == 1:
            yield rows


class Clocks:
    """Decides whether the clocks of a communicator's ranks are accurate enough to split its calls."""

    def __init__(self, connection: Connection, alignment: Alignment) -> None:
        self.alignment = alignment
        self.medians: dict[tuple[str, str], int] = {}
        self.errors: dict[tuple[str, int], Error] = {}  # by communicator and second
        self.error_ns = 0.0
        self.device_errors: dict[int, float] = {}  # by rank
        has_nccl = connection.execute("SELECT 1 FROM communicator WHERE library = 'nccl'").fetchone()
        if has_nccl:
            errors = SQL.run(connection, "device_clocks")
            self.device_errors = {rank: math.inf if error_ns is None else error_ns for rank, error_ns in errors}
        if has_nccl or len(alignment.clocks) > 1 or any(clock.violation_ns for clock in alignment.clocks.values()):
            rows = SQL.run(connection, "median_durations")
            self.medians = {(identity, call): median_ns for identity, call, median_ns in rows}

    def error(self, rows: Sequence[KeptRow]) -> Error:
        if not self.medians:
            return NO_ERROR
        key = (rows[0].identity, rows[0].start_ns >> SECOND_LOG2)
        if key not in self.errors:
            self.errors[key] = self.alignment.error([row.world_rank for row in rows], rows[0].start_ns)
        return self.errors[key] if rows[0].library == "mpi" else self._with_devices(self.errors[key], rows)

    def _with_devices(self, error: Error, rows: Sequence[KeptRow]) -> Error:
        device_ns = max(self.device_errors.get(row.world_rank, math.inf) for row in rows)
        return Error(error.moment_ns + device_ns, error.distance_ns + 2 * device_ns)

    def tell(self, rows: Sequence[KeptRow]) -> bool:
        """True if the error is at most half the median duration. Half, because a host that is late by the same amount in all calls looks
        like a host whose clock is off, and causes an error of half the wait."""
        error = self.error(rows)
        if 2 * error.moment_ns > self.medians.get((rows[0].identity, rows[0].call), 0):
            return False
        self.error_ns = max(self.error_ns, error.distance_ns)
        return True


def _arrivals(rows: Sequence[KeptRow], starts: Sequence[int]) -> Iterator[Arrival]:
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
            yield Arrival(row, starts[last], min(without_ns, starts[last]), rows[last].world_rank, starts[own] > starts[last])


def _completion_row(completion: Completion, start_ns: int, arrivals: Sequence[Arrival]) -> tuple:
    """Row of late_call for a call that completed collectives. Timestamps of arrivals are aligned."""
    duration_ns = completion.end_ns - completion.start_ns
    ready = max(arrivals, key=lambda arrival: arrival.last_ns)
    others = [arrival.last_ns if arrival.last_rank != ready.last_rank else arrival.without_ns for arrival in arrivals]
    wait_ns, alone_ns, last_rank = _waited(_share(start_ns, duration_ns, ready.last_ns, max(others), ready.last_rank))
    row, start_ns = ready.row, storable(start_ns)
    what = (row.identity, row.sequence, row.world_rank, row.call, row.bytes, row.region, start_ns, start_ns + duration_ns)
    return (*what, wait_ns, duration_ns - wait_ns, alone_ns, last_rank, ready.is_last, 0, completion.call, row.wait_state if wait_ns else None)


def _split(rows: Sequence[KeptRow], starts: Sequence[int], is_estimate: bool) -> Iterator[tuple]:
    """Rows of late_call. Timestamps are aligned; durations are from each rank's own clock."""
    durations = [row.end_ns - row.start_ns for row in rows]
    shares = _by_duration(rows, durations) if is_estimate else SHARES[rows[0].kind](rows, starts, durations)
    waited_for = {share.last_rank for share in shares}
    for row, start_ns, duration_ns, (wait_ns, alone_ns, last_rank) in zip(rows, starts, durations, shares):
        start_ns = storable(start_ns)
        what = (row.identity, row.sequence, row.world_rank, row.call, row.bytes, row.region, start_ns, start_ns + duration_ns)
        wait_state = row.wait_state if wait_ns else None
        yield (*what, wait_ns, duration_ns - wait_ns, alone_ns, last_rank, row.world_rank in waited_for, is_estimate, None, wait_state)


def _by_duration(rows: Sequence[KeptRow], durations: Sequence[int]) -> list[Share]:
    shortest, next_shortest = sorted(durations)[:2]
    last_rank = rows[durations.index(shortest)].world_rank
    return [Share(spent - shortest, spent - shortest - max(0, spent - next_shortest), last_rank) for spent in durations]


def _all(rows: Sequence[KeptRow], starts: Sequence[int], durations: Sequence[int]) -> list[Share]:
    before_last, last = sorted(starts)[-2:]
    last_rank = rows[starts.index(last)].world_rank
    return [_share(start, spent, last, before_last, last_rank) for start, spent in zip(starts, durations)]


def _root_first(rows: Sequence[KeptRow], starts: Sequence[int], durations: Sequence[int]) -> list[Share]:
    root = _root(rows)
    others = max(start for place, start in enumerate(starts) if place != root)
    return [_waited(_share(start, spent, starts[root], others, rows[root].world_rank)) for start, spent in zip(starts, durations)]


def _root_last(rows: Sequence[KeptRow], starts: Sequence[int], durations: Sequence[int]) -> list[Share]:
    root = _root(rows)
    *others, (last, last_rank) = sorted((start, row.world_rank) for row, start in zip(rows, starts) if not row.is_root)
    before_last = others[-1][0] if others else starts[root]
    shares = [NO_SHARE] * len(rows)
    shares[root] = _waited(_share(starts[root], durations[root], last, before_last, last_rank))
    return shares


def _lower(rows: Sequence[KeptRow], starts: Sequence[int], durations: Sequence[int]) -> list[Share]:
    shares = [NO_SHARE]
    last, before_last, last_rank = starts[0], min(starts), rows[0].world_rank
    for row, start, spent in zip(rows[1:], starts[1:], durations[1:]):
        shares.append(_waited(_share(start, spent, last, max(start, before_last), last_rank)))
        if start > last:
            last, before_last, last_rank = start, last, row.world_rank
        else:
            before_last = max(before_last, start)
    return shares


def _has_root(rows: Sequence[KeptRow]) -> bool:
    """False if the root was not read, or if ranks named different roots."""
    return rows[0].kind == "lower" or sum(row.is_root for row in rows) == 1


def _root(rows: Sequence[KeptRow]) -> int:
    return next(place for place, row in enumerate(rows) if row.is_root)


def _share(start: int, duration: int, last: int, before_last: int, last_rank: int) -> Share:
    wait_ns = min(max(last - start, 0), duration)
    without_ns = min(max(min(before_last, last) - start, 0), duration)
    return Share(wait_ns, wait_ns - without_ns, last_rank)


def _waited(share: Share) -> Share:
    return share if share.wait_ns else NO_SHARE


SHARES = {"all": _all, "root-first": _root_first, "root-last": _root_last, "lower": _lower}


def _insert(connection: Connection, calls: list[tuple]) -> None:
    connection.executemany("INSERT INTO late_call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", calls)
    calls.clear()
