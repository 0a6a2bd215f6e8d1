"""The traffic of a run that a replay makes again: which time of it, the sampled calls one after the
other, the messages that they received, the communicators and datatypes.

And of each thread of a replay its requests, as numbers that are used again as its calls go by, the
memory of its buffers, and what it did in the gaps between its calls.

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

import re
from bisect import bisect_right
from collections import Counter, defaultdict, namedtuple
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from sqlite3 import Connection
from typing import Any

from ..base import (
    Columns,
    Members,
    NONE,
    Texts,
    gathered,
    np,
    row_type,
    threshold,
    units,
    values_of,
)
from ..run import Alignment, holes_aligned, without_holes
from ..run.sampled import sampled
from .kit import (
    COMPLETING,
    Call,
    Comm,
    FREEING,
    Kit,
    MATCHING,
    RESTARTING,
    Record,
    SELF,
    STARTING,
    TAKING,
    Type,
    WORLD,
)


SILENT = ("setup", "communicator")  # families that a replay needs no more
RECEIVES = ("MPI_Recv", "MPI_Irecv")
MOST_UNDERWAY = 64  # messages between two ranks at the begin of the window


TEXTS = ("call", "direction")  # columns
Row = Any  # of a table of the samples, with its columns; its numbers are None where there is none


def rows_in(table: Columns, texts: Texts) -> Iterator[Row]:
    columns = {
        name: values_of(column, texts if name in TEXTS else None)
        for name, column in vars(table).items()
    }
    return map(row_type(type(table).__name__, columns)._make, zip(*columns.values()))


def rows_with(table: Columns, texts: Texts, name: str, *wanted: str) -> Iterator[Row]:
    """The rows whose column has one of these texts."""
    return rows_in(table.take(texts.among(getattr(table, name), wanted)), texts)


def place_of(row: Row) -> tuple[int, int, int]:
    """Rank, thread and begin."""
    return row.world_rank, row.thread, row.start_ns


def rows_of(
    connection: Connection,
    alignment: Alignment,
    numbers: dict[tuple[int, int], int],
    since_ns: int,
    until_ns: int,
) -> Iterator[Row]:
    """The calls of MPI in the window, each thread's in their order. comm: the communicator in the
    kit; None: none that can be made. peer: world rank; None: MPI_PROC_NULL, or no message.
    polled_since_ns: begin of the first poll before it that found nothing; polled_ns: inside all of
    them."""
    samples = sampled(connection)
    calls, texts = samples.calls, samples.texts
    silent = {
        name
        for name, family, library in connection.execute("SELECT name, family, library FROM call")
        if family in SILENT or library != "mpi"
    }
    start_ns = alignment.aligned(calls.world_rank, calls.start_ns)
    end_ns = alignment.aligned(calls.world_rank, calls.end_ns)
    is_own = (start_ns >= since_ns) & (end_ns <= until_ns) & ~texts.among(calls.call, silent)
    calls = calls.take(np.flatnonzero(is_own))
    calls = calls.take(np.lexsort((calls.start_ns, calls.thread, calls.world_rank)))

    places = zip(calls.world_rank.tolist(), calls.communicator.tolist())
    comm = np.array([numbers.get(place, NONE) for place in places], np.int64)
    return rows_in(calls.changed(comm=comm, bytes=np.maximum(calls.bytes, 0)), texts)


def received_of(connection: Connection) -> dict[tuple[int, int, int], Row]:
    """By place, the messages that exchanges received."""
    samples = sampled(connection)
    received = rows_with(samples.messages, samples.texts, "direction", "received")
    return {place_of(row): row for row in received if row.peer is not None and row.peer >= 0}


def with_senders(rows: Sequence[Row], alignment: Alignment) -> list[Row]:
    """Gives receives that were posted without a tag those of their senders. Messages between two
    ranks do not overtake each other, so the n-th of these receives has the n-th message that no
    other receive has."""
    numbered = {received_by(row) for row in rows if row.call in RECEIVES}
    sent: dict[Hashable, list[Row]] = defaultdict(list)
    received: dict[Hashable, list[int]] = defaultdict(list)
    for at in sorted(range(len(rows)), key=lambda at: (rows[at].world_rank, rows[at].start_ns)):
        row = rows[at]
        if row.call in RECEIVES:
            if row.number is None and row.peer is not None:
                received[row.comm, row.peer, row.world_rank].append(at)
        elif "send" in row.call.lower() and row.number and sent_by(row) not in numbered:
            sent[row.comm, row.world_rank, row.peer].append(row)
    found = list(rows)
    for key, places in received.items():
        skipped, sends = _in_order([rows[at] for at in places], sent[key], alignment)
        for at, send in zip(places[skipped:], sends):
            found[at] = rows[at]._replace(tag=send.tag, number=send.number)
    return found


def sent_by(row: Row) -> Hashable:
    """The message that a call sends: the same for the call that receives it."""
    return row.comm, row.world_rank, row.peer, row.tag, row.number


def received_by(row: Row) -> Hashable:
    """The message that a call receives or finds."""
    return row.comm, row.peer, row.world_rank, row.tag, row.number


def _in_order(
    receives: Sequence[Row], sends: Sequence[Row], alignment: Alignment
) -> tuple[int, Sequence[Row]]:
    """How many receives have messages from before the window, and the sends of the others: with the
    fewest skipped on either side so that sizes fit and none is complete before it is sent."""

    def is_one(receive: Row, send: Row) -> bool:
        fits = receive.bytes == send.bytes or (
            receive.call == "MPI_Irecv" and receive.bytes > send.bytes  # as it was posted
        )
        done_ns = alignment.aligned_ns(receive.world_rank, receive.completed_ns or receive.end_ns)
        return fits and done_ns >= alignment.aligned_ns(send.world_rank, send.start_ns)

    for skipped in range(MOST_UNDERWAY + 1):
        for own, other in ((skipped, 0), (0, skipped)):
            if all(map(is_one, receives[own:], sends[other:])):
                return own, sends[other:]
    return 0, []


COUNTS = re.compile(r"counts\.[0-9]{1,5}( [0-9]{1,18})+")
BYTES = Type("MPI_BYTE", 1, 1, 1)
DUPLICATES = ("MPI_Comm_dup", "MPI_Comm_dup_with_info", "MPI_Comm_idup")


Described = namedtuple("Described", "parent constructor ordinal ranks")  # a communicator


# Arguments of a call. counts: those that it has for each rank; buffer_at, received_at: where its
# buffer is, and the one that it receives in; both as far as they were recorded.
Signature = namedtuple("Signature", "type count op is_in_place counts buffer_at received_at")
NOTHING = Signature(0, 0, None, False, (), None, None)


def communicators(
    connection: Connection, world_size: int
) -> tuple[list[Comm], dict[tuple[int, int], int]]:
    """The communicators that can be made: by a duplicate or a split of their parents, which come
    first. And by rank and its number for a communicator, the number in the kit."""
    everybody = tuple(range(world_size))
    comms = [Comm(WORLD, 0, "world", everybody), Comm(SELF, 0, "self", ())]
    place: dict[str, int] = {}
    described: dict[str, Described] = {}
    numbers: dict[tuple[int, int], int] = {}
    rows = connection.execute(
        "SELECT world_rank, communicator, identity, parent_identity, name, constructor, ordinal,"
        " members, is_inter, size FROM communicator WHERE library = 'mpi'"
        " ORDER BY world_rank, communicator"
    ).fetchall()
    for rank, number, identity, parent, name, constructor, ordinal, members, *others in rows:
        is_inter, size = others
        listed = Members(members)
        ranks = tuple(listed.below(world_size))
        if is_inter or not listed.is_whole or len(ranks) != size:
            continue
        if not constructor and name == "MPI_COMM_SELF":
            numbers[rank, number] = SELF
        elif not constructor and ranks == everybody:
            place[identity] = WORLD
        else:
            described[identity] = Described(parent or "", constructor, ordinal, ranks)

    left = sorted(identity for identity in described if identity not in place)
    while ready := [
        identity
        for identity in left
        for parent in [described[identity].parent]
        if parent in place or parent not in described
    ]:
        rounds: dict[tuple, list[str]] = defaultdict(list)
        for identity in ready:
            parent, constructor, ordinal, ranks = described[identity]
            of = place.get(parent, WORLD)
            fits = set(ranks) <= set(comms[of].members)
            how = "dup" if constructor in DUPLICATES and ranks == comms[of].members else "split"
            rounds[of if fits else WORLD, how, constructor, ordinal].append(identity)
        for (of, how, *_), identities in sorted(rounds.items()):
            for apart in _apart(identities, described):
                round_ = len(comms)
                for identity in apart:
                    place[identity] = len(comms)
                    comms.append(Comm(of, round_, how, described[identity].ranks))
        left = [identity for identity in left if identity not in place]
    for rank, number, identity, *_ in rows:
        if identity in place:
            numbers[rank, number] = place[identity]
    return comms, numbers


def _apart(identities: list[str], described: dict[str, Described]) -> list[list[str]]:
    """Communicators that one split can make: no rank is in two of them."""
    found: dict[int, list[str]] = defaultdict(list)
    taken: dict[int, set[int]] = defaultdict(set)
    for identity in identities:
        ranks = set(described[identity].ranks)
        split = next(split for split in count() if not ranks & taken[split])
        found[split].append(identity)
        taken[split] |= ranks
    return list(found.values())


def types_of(connection: Connection) -> tuple[list[Type], dict[tuple[int, int], Signature]]:
    """The datatypes, and what the numbers of each rank's signatures stand for. With a datatype for
    each count, as in MPI_Alltoallw, counts are recorded in bytes."""
    counts = {
        (rank, key): tuple(map(int, value.split()))
        for rank, key, value in connection.execute(
            "SELECT world_rank, key, value FROM fact WHERE key GLOB 'counts.*'"
        )
        if COUNTS.fullmatch(f"{key} {value}")
    }
    types: dict[Type, int] = {}
    found = {}
    for rank, number, *type_, elements, op, in_place, buffer, received in connection.execute(
        "SELECT world_rank, signature, datatype, type_bytes, extent,"
        " coalesce(nullif(blocks, 0), 1), count, op, is_in_place, buffer_at, received_at"
        " FROM signature WHERE (count IS NULL) = (type_bytes IS NULL)"
        " AND (count IS NOT NULL OR counts_hash IS NOT NULL)"
    ):
        number_of_type = types.setdefault(BYTES if elements is None else Type(*type_), len(types))
        found[rank, number] = Signature(
            number_of_type,
            elements or 0,
            op or None,
            bool(in_place),
            counts.get((rank, f"counts.{number}"), ()),
            buffer,
            received,
        )
    return list(types), found


# The record of a rank; times are since its start. is_cut: by the end of the job.
RankRecord = namedtuple("RankRecord", "world_rank begin_ns end_ns asked_ns is_full is_cut reset_ns")


def recorded(connection: Connection, alignment: Alignment) -> tuple[Record | None, tuple[int, int]]:
    """The time that the records of all ranks have in common, on the run's axis. Each begins when
    the rank's own MPI_Init has returned: without START none lacks a call of before, and none of
    after if the job ended."""
    records = [
        RankRecord(*row)
        for row in connection.execute(
            "SELECT world_rank, record_begin_ns, record_end_ns, record_asked_ns, record_is_full,"
            " record_end_ns >= rank_wall.wall_ns, coalesce(reset_unix_ns - start_unix_ns, 0)"
            " FROM rank JOIN rank_wall USING (world_rank) WHERE record_begin_ns IS NOT NULL"
        )
    ]
    if not records:
        return None, (0, 0)
    (ranks,) = connection.execute("SELECT count(*) FROM rank").fetchone()
    (at_once,) = connection.execute(
        "SELECT count(*) FROM fact WHERE key = 'settings.COMMPROF_RECORD' AND value NOT GLOB '*@*'"
    ).fetchone()
    has_all = at_once == ranks and all(of.reset_ns <= of.begin_ns for of in records)
    since_ns = (min if has_all else max)(
        alignment.aligned_ns(of.world_rank, max(of.begin_ns, of.reset_ns)) for of in records
    )
    until_ns = (min, max)[all(of.is_cut for of in records)](
        alignment.aligned_ns(of.world_rank, of.end_ns) for of in records
    )
    ns = max(0, until_ns - since_ns) if len(records) == ranks else 0
    asked_ns = max(of.asked_ns for of in records)
    return Record(ns, asked_ns, _why_short(records, ranks)), (since_ns, until_ns)


def _why_short(records: list[RankRecord], ranks: int) -> str | None:
    """Why ranks have less than they were asked to record."""
    full = sum(of.is_full for of in records)
    reasons = {
        f"only {len(records)} of {ranks} ranks were asked to": len(records) < ranks,
        f"no more room on {full} of {ranks} ranks (COMMPROF_MEMORY)": full,
        "the job ended before": any(of.is_cut for of in records),
        "MPI_Pcontrol(2) has discarded the rest": any(of.reset_ns > of.begin_ns for of in records),
    }
    return next((why for why, is_so in reasons.items() if is_so), None)


def window(connection: Connection, alignment: Alignment) -> tuple[int, int]:
    """The longest time, on the run's axis, without a hole in the samples of any thread."""
    walls = connection.execute("SELECT world_rank, coalesce(wall_ns, 0) FROM rank_wall").fetchall()
    begin_ns = min((alignment.aligned_ns(rank, 0) for rank, _ in walls), default=0)
    end_ns = max((alignment.aligned_ns(rank, wall_ns) for rank, wall_ns in walls), default=0)
    _, *unseen = holes_aligned(connection, alignment)
    windows = np.clip(without_holes(*unseen), begin_ns, max(begin_ns, end_ns))
    longest = np.diff(windows, axis=1).argmax()
    return int(windows[longest, 0]), int(windows[longest, 1])


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
        # by when they are completed, each with its call
        self.open: dict[int, list[tuple[int, str]]] = defaultdict(list)
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
        requests = tuple(request for request, _ in self.open.pop(end_ns, ()))
        for request in requests:
            if request in self.persistent:
                self.persistent[request].is_active = False
            else:
                heappush(self.free, request)
        return requests

    def _opened(self, request: int, completed_ns: int | None, name: str) -> int:
        self.open[completed_ns or 0].append((request, name))
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
