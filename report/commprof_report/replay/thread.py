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
from collections import Counter, namedtuple
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from sqlite3 import Connection

from ..base.columns import np
from ..base import gathered, threshold
from .kit import Call, Kit, stem
from .traffic import Row

Operation = tuple[int, int]  # communicator, and which persistent collective of it


@dataclass
class Persistent:
    """A request. `call` has the peer and tag of its first start, which those that set it up may not
    have recorded; None: it was never started."""

    request: int
    set_up: Call
    call: Call | None = None
    is_active: bool = False
    operation: Operation | None = None  # a collective

    @property
    def as_made(self) -> Call:
        if not self.call:
            return self.set_up
        return self.call._replace(
            buffer_at=self.set_up.buffer_at, received_at=self.set_up.received_at
        )

    def fits(self, call: Call, operation: Operation | None) -> bool:
        if operation or self.operation:
            return self.operation == operation
        if self.call:
            return self.call == call
        return without_message(self.set_up) == without_message(call)


def without_message(call: Call) -> Call:
    return call._replace(peer=None, tag=0, buffer_at=None, received_at=None)


class Slots:
    def __init__(self, starts: Counter[Operation]) -> None:
        self.starts = starts  # to come, of each collective
        self.free: list[int] = []
        self.used = 0
        self.persistent: dict[int, Persistent] = {}
        self.before: list[Persistent] = []  # set up before the program begins

    def take(self) -> int:
        if self.free:
            return heappop(self.free)
        self.used += 1
        return self.used - 1

    def give_back(self, request: int) -> None:
        heappush(self.free, request)

    def complete(self, request: int) -> None:
        if request in self.persistent:
            self.persistent[request].is_active = False
        else:
            self.give_back(request)

    def set_up(self, call: Call, operation: Operation | None) -> Persistent:
        request = self.take()
        self.persistent[request] = Persistent(request, call, operation=operation)
        return self.persistent[request]

    def start(self, call: Call, operation: Operation | None) -> int:
        """The request of an operation that `call` sets up."""
        idle = (own for own in self.persistent.values() if not own.is_active)
        found = next((own for own in idle if own.fits(call, operation)), None)
        if not found:
            self.used += 1  # a number that was not used before: it is set up before all others
            found = self.persistent[self.used - 1] = Persistent(
                self.used - 1, call, operation=operation
            )
            self.before.append(found)
        if operation:
            self.starts[operation] -= 1
        found.call, found.is_active = call, True
        return found.request

    def free_one(self) -> int | None:
        """None: there is none that is not active."""
        idle = [
            request for request, own in self.persistent.items()
            if not own.is_active and not (own.operation and self.starts[own.operation])
        ]
        if not idle:
            return None
        del self.persistent[idle[-1]]
        self.give_back(idle[-1])
        return idle[-1]


PAGE = 4096
NO_BUFFERS = (None, None)


class Memory:
    def __init__(self, buffers: Sequence[tuple[int, int]]) -> None:
        """`buffers`: address and bytes, in the order of their use."""
        self.begins: list[int] = []  # of what buffers cover together, in the order of addresses
        end = -1
        for address, size in sorted(set(buffers)):
            if address > end:
                self.begins.append(address)
            end = max(end, address + size)
        self.shifts = self._places(buffers)

    def _places(self, buffers: Sequence[tuple[int, int]]) -> dict[int, int]:
        """How far each part moves: the first that is used comes first."""
        ends: dict[int, int] = {}
        for address, size in buffers:
            begin = self._begin(address)
            ends[begin] = max(ends.get(begin, 0), address + size)
        shifts, free = {}, 0
        for begin, end in ends.items():
            place = -(-free // PAGE) * PAGE + begin % PAGE
            shifts[begin], free = place - begin, place + end - begin
        return shifts

    def _begin(self, address: int) -> int:
        return self.begins[bisect_right(self.begins, address) - 1]

    def at(self, address: int) -> int:
        return address + self.shifts[self._begin(address)]

    def placed(self, call: Call, buffers: tuple[int | None, int | None]) -> Call:
        """The call with its buffers, which have these addresses."""
        if buffers == NO_BUFFERS:
            return call
        buffer_at, received_at = (None if at is None else self.at(at) for at in buffers)
        return call._replace(buffer_at=buffer_at, received_at=received_at)


def spans(kit: Kit, vectors: Sequence[Sequence[int]], call: Call) -> tuple[int, int]:
    """Bytes from the begin of what a call sends, and of what it receives, to their ends at most."""
    size = len(kit.comms[call.comm or 0].members) or 1
    name = stem(call.name)

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


# at_ns: since the rank's start. is_away: asleep, or at a disk; else on a core, or waiting for one.
Reading = namedtuple("Reading", "at_ns is_away")


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
