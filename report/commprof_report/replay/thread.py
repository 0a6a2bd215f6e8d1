"""A thread of a replay: its requests, as numbers that are used again as its calls go by, the memory
of its buffers, and what it did in the gaps between its calls.

A profile does not say which request a Start starts or a Request_free frees. A Start is given one
that was set up for such a message and is not active, one that is set up before the program begins
if there is none; a Request_free the one that was set up last of those that are not active. Which
persistent collective a Start starts is recorded. None that is started again is freed, because all
ranks must set up the same ones.

Buffers that overlapped in the job do so again, in the same way; the others stand one behind the
other, as far from the begin of a page as in the job.

In a gap the thread slept, by readings of whether it was on a core (table cpu_time), or did
something else between polls that found nothing. A reading falls into one gap. Those before the same
call of the kit are taken together: a loop has many such gaps, and a reading finds few of them. Of
polls before a call that found something a profile has the begin of the first one and the time
inside all, not their number. The time that such a poll takes on average tells it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict, namedtuple
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from sqlite3 import Connection

from ..base import gathered, np, threshold, units
from .kit import (
    COMPLETING,
    FREEING,
    MATCHING,
    RESTARTING,
    STARTING,
    TAKING,
    Call,
    Kit,
)
from .traffic import Row

Operation = tuple[int, int]  # communicator, and which persistent collective of it


# A call of a persistent request that is started: the call that set it up, as it is made; world rank
# of the peer. Of a collective: `number` is which start of `operation` it is; sequence: of the
# set-up, equal on all ranks.
Started = namedtuple(
    "Started", "call peer number completed_ns operation sequence", defaults=[None, None]
)


@dataclass
class Persistent:
    """A request. `call` has the peer and tag of its first start, which those that set it up may not
    have recorded; None: it was never started."""

    request: int
    set_up: Call
    operation: Operation | None  # a collective
    call: Call | None = None
    is_active: bool = False

    @property
    def as_made(self) -> Call:
        return (self.call or self.set_up)._replace(
            buffer_at=self.set_up.buffer_at, received_at=self.set_up.received_at
        )

    def fits(self, call: Call, operation: Operation | None) -> bool:
        if operation or self.operation:
            return self.operation == operation
        if self.call:
            return self.call == call
        unknown = {"peer": None, "tag": 0, "buffer_at": None, "received_at": None}
        return self.set_up._replace(**unknown) == call._replace(**unknown)


class Requests:
    """The requests of a thread, call after call."""

    def __init__(self, starts: Counter[Operation]) -> None:
        self.starts = starts  # to come, of each collective
        self.free: list[int] = []
        self.unused = count()
        self.persistent: dict[int, Persistent] = {}
        self.before: list[Persistent] = []  # set up before the program begins
        self.open: dict[int, list[int]] = defaultdict(list)  # by when they are completed
        self.late: dict[int, str] = {}  # the calls of those that are open
        self.matched: dict[Hashable, int] = {}  # messages that a probe has taken

    def _take(self) -> int:
        return heappop(self.free) if self.free else next(self.unused)

    def set_up(self, call: Call, operation: Operation | None) -> Persistent:
        request = self._take()
        self.persistent[request] = Persistent(request, call, operation)
        return self.persistent[request]

    def of(
        self, row: Row, kind: str, started: Iterable[Started], message: Hashable
    ) -> tuple[int, ...]:
        """The requests that the call starts, completes, frees or finds."""
        if kind == COMPLETING:
            return self._completed(row.end_ns)
        if kind == RESTARTING:
            return tuple(map(self._start, started))
        if kind == FREEING:
            return self._free_one()
        if kind == STARTING:
            return (self._opened(self._take(), row.completed_ns, row.call),)
        if kind == MATCHING:
            self.matched[message] = self._take()
            return (self.matched[message],)
        if kind != TAKING or message not in self.matched:
            return ()
        taken = self.matched.pop(message)
        if row.call == "MPI_Imrecv":
            self._opened(taken, row.completed_ns, row.call)
        else:
            heappush(self.free, taken)
        return (taken,)

    def _completed(self, end_ns: int) -> tuple[int, ...]:
        requests = tuple(self.open.pop(end_ns, ()))
        for request in requests:
            del self.late[request]
            if request in self.persistent:
                self.persistent[request].is_active = False
            else:
                heappush(self.free, request)
        return requests

    def _opened(self, request: int, completed_ns: int | None, name: str) -> int:
        self.open[completed_ns or 0].append(request)
        self.late[request] = name
        return request

    def _start(self, part: Started) -> int:
        """The request of an operation that `part.call` sets up."""
        idle = (own for own in self.persistent.values() if not own.is_active)
        found = next((own for own in idle if own.fits(part.call, part.operation)), None)
        if not found:
            request = next(self.unused)  # it is set up before all others
            found = self.persistent[request] = Persistent(request, part.call, part.operation)
            self.before.append(found)
        if part.operation:
            self.starts[part.operation] -= 1
        found.call, found.is_active = part.call, True
        return self._opened(found.request, part.completed_ns, part.call.name)

    def _free_one(self) -> tuple[int, ...]:
        """None if all are active."""
        idle = [
            request
            for request, own in self.persistent.items()
            if not own.is_active and not (own.operation and self.starts[own.operation])
        ]
        for request in idle[-1:]:
            del self.persistent[request]
            heappush(self.free, request)
        return tuple(idle[-1:])


PAGE = 4096
NO_BUFFERS = (None, None)


class Memory:
    def __init__(self, buffers: Sequence[tuple[int, int]]) -> None:
        """`buffers`: address and bytes, in the order of their use. The first that is used comes
        first."""
        self.begins: list[int] = []  # of what buffers cover together, in the order of addresses
        ends: list[int] = []
        for address, size in sorted(set(buffers)):
            if not ends or address > ends[-1]:
                self.begins.append(address)
                ends.append(address)
            ends[-1] = max(ends[-1], address + size)
        lengths = {begin: end - begin for begin, end in zip(self.begins, ends)}
        self.places: dict[int, int] = {}  # by begin
        free = 0
        for begin in dict.fromkeys(self._begin(address) for address, _ in buffers):
            self.places[begin] = -(-free // PAGE) * PAGE + begin % PAGE
            free = self.places[begin] + lengths[begin]

    def _begin(self, address: int) -> int:
        return self.begins[bisect_right(self.begins, address) - 1]

    def at(self, address: int) -> int:
        begin = self._begin(address)
        return self.places[begin] + address - begin

    def placed(self, call: Call, buffers: tuple[int | None, int | None]) -> Call:
        """The call with its buffers, which have these addresses."""
        if buffers == NO_BUFFERS:
            return call
        buffer_at, received_at = (None if at is None else self.at(at) for at in buffers)
        return call._replace(buffer_at=buffer_at, received_at=received_at)


def spans(kit: Kit, vectors: Sequence[Sequence[int]], call: Call) -> tuple[int, int]:
    """Bytes from the begin of what a call sends, and of what it receives, to their ends at most."""
    size = len(kit.comms[call.comm or 0].members) or 1
    name = units.operation(call.name)

    def span(elements: int, of: int | None) -> int:
        type_ = kit.types[of] if of is not None else None
        return elements * abs(type_.extent) + type_.bytes if type_ else elements

    def counted(vector: int | None) -> int:
        return span(sum(vectors[vector]), call.type) if vector is not None else 0

    own, elements = span(call.count or 0, call.type), call.count or 0
    of_all = span(size * elements, call.type)
    sent = of_all if name in ("scatter", "alltoall", "reduce_scatter_block") else own
    received = of_all if name in ("gather", "allgather", "alltoall") else own
    if name in ("gatherv", "allgatherv"):
        return own, counted(call.vector)
    if name in ("scatterv", "reduce_scatter"):
        return counted(call.vector), own
    if call.received_vector is not None:
        return counted(call.vector), counted(call.received_vector)
    if call.received_count is not None:
        return own, span(call.received_count, call.received_type)
    return sent, received


FEWEST_READINGS = 10  # a second of them; fewer say little
LOOP_NS = threshold("replay.polls")


class Sleep:
    """Readings of each thread, by rank and thread: when; how often since the rank's start it was
    outside MPI on a core or waiting for one, outside MPI asleep or at a disk, and inside MPI."""

    def __init__(self, connection: Connection) -> None:
        self.readings = gathered(
            ((rank, thread), reading)
            for rank, thread, *reading in connection.execute(
                "SELECT world_rank, thread, at_ns, outside_ready, outside_asleep + outside_disk,"
                " inside_ready + inside_asleep + inside_disk FROM cpu_time ORDER BY 1, 2, 3"
            )
        )

    def calls_of(
        self,
        place: tuple[int, int],
        ends_ns: Sequence[int],
        starts_ns: Sequence[int],
        calls: Sequence[int],
    ) -> set[int]:
        """The calls before which a thread mostly slept, of those that begin at `starts_ns`, each
        after the end of the one before. Of a call with few readings all of the thread's decide.
        Where readings have been thinned, the last of some is known if all found the same, which
        leans to what the thread mostly does."""
        readings = np.array(self.readings.get(place, [[0] * 4]), np.int64)
        ready, away, inside = np.diff(readings[:, 1:], axis=0).T
        is_known = (inside == 0) & ((ready > 0) != (away > 0))
        at_ns, is_away = readings[1:, 0][is_known], away[is_known] > 0
        following = np.searchsorted(starts_ns, at_ns)
        seen = Counter(
            (calls[at], away)
            for at, ns, away in zip(following, at_ns, is_away)
            if at < len(calls) and ns > ends_ns[at]
        )
        is_thread = _is_asleep(*(readings[-1] - readings[0])[1:3])
        found = {call: _is_asleep(seen[call, False], seen[call, True]) for call in set(calls)}
        return {call for call, is_away in found.items() if is_away or is_away is None and is_thread}


def _is_asleep(ready: int, away: int) -> bool | None:
    """None: too few readings."""
    return away > ready if ready + away >= FEWEST_READINGS else None


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
    values, weights = np.array(sorted(weighted)).T
    return values[np.searchsorted(np.cumsum(weights), weights.sum() / 2)]
