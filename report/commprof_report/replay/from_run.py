"""The kit of a run: the calls in the window that was recorded (COMMPROF_RECORD); without one, in
the longest time in which every call of every rank was sampled.

A collective is in it if all members of its communicator have it there, a message if both its sides
are. What is cut off by the ends of that time, and what cannot be made again, is left out on all
ranks that take part, and counted with the reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from sqlite3 import Connection
from typing import NamedTuple

from ..base import units
from ..base.arrays import np
from ..base.columns import NONE
from ..run.alignment import Alignment, align
from ..run.holes import FAR_NS
from ..run.run import Run
from ..run.sampled import Sampled, sampled
from .gaps import Polls, Sleep
from .kit import (
    COMPLETING, FINDING, FREEING, KINDS, MATCHING, PREPARING, RESTARTING, SELF, STARTING, TAKING,
    Call, Kit, Made, Type, stem,
)
from .memory import NO_BUFFERS, Memory, spans
from .objects import BYTES, NOTHING, Signature, buffers_of, communicators, counts_of, types_of
from .run_calls import (
    RECEIVES, Row, received_by, received_of, rows_of, sent_by, with_senders,
)
from .slots import Operation, Persistent, Slots
from .window import recorded, window

CUT = "the other ranks' part is not in the window"
UNKNOWN = "is none of the calls that can be made again"
UNEQUAL = "its counts are not recorded (commprof-run --record)"
COUNTED = ("alltoallv", "alltoallw", "reduce_scatter")  # by vectors that no other rank tells
INTER = "on an intercommunicator"
OPEN = "completes nothing that is in the kit"
NEIGHBORS = "the order of its communicator's neighbors is not recorded"
PERSISTENT = "persistent collectives of ranks with several threads are not replayed"
UNSEEN = "which message it finds is not recorded"
UNKNOWN_START = "which requests it starts, or what they move, is not recorded"
VECTORED = ("gatherv", "allgatherv", "scatterv", *COUNTED)
ON_NONE = (COMPLETING, RESTARTING, FREEING)  # calls without a communicator
NOTHING_LEFT = {  # why a call of which no request is in the kit is left out
    COMPLETING: OPEN, RESTARTING: UNKNOWN_START, FREEING: "frees nothing that is in the kit",
    TAKING: UNSEEN,
}
PREPARED = [name for name, kind in KINDS.items() if kind == PREPARING]


class Started(NamedTuple):
    """A message of a persistent request that a call started."""

    call: Call  # that set the request up
    peer: int  # world rank
    number: int | None
    is_sent: bool
    completed_ns: int | None
    operation: Operation | None = None  # a collective, whose `number`-th start this is
    sequence: int | None = None  # of its set-up, equal on all ranks


class Vectors(NamedTuple):
    """The counts of a rank in a collective: numbers in the kit."""

    sent: int | None = None  # or, if there is one alone, that
    received: int | None = None
    type: int | None = None  # in place of the call's
    elements: int | None = None  # the same


NO_VECTORS = Vectors()


def kit_of(run: Run) -> Kit:
    alignment = align(run.connection)
    record, (since_ns, until_ns) = recorded(run.connection, alignment)
    if not record or not record.ns:
        since_ns, until_ns = window(run.connection, alignment)
    made = Kit(library_of(run.connection), run.world_size, max(0, until_ns - since_ns), record)
    made.comms, numbers = communicators(run.connection, run.world_size)
    made.types, signatures = types_of(run.connection)
    rows = list(rows_of(run.connection, alignment, numbers, since_ns, until_ns))
    started = started_of(run.connection, numbers, made, signatures)
    maker = _Maker(run.connection, made, signatures, started)
    if len(sampled(run.connection).starts):
        everything = rows_of(run.connection, alignment, numbers, -FAR_NS, FAR_NS)
        set_ups = [
            row for row in everything
            if KINDS.get(row.call) == PREPARING and row.sequence is not None
        ]
        maker.add_collectives(sampled(run.connection), set_ups, numbers)
    maker.take(with_senders(rows, alignment), alignment)
    return made


def library_of(connection: Connection) -> str:
    versions = connection.execute("SELECT DISTINCT value FROM fact WHERE key = 'mpi_version'")
    return ", ".join(sorted(units.library_name(version) for (version,) in versions)) or "unknown"


def started_of(
    connection: Connection, numbers: dict[tuple[int, int], int], kit: Kit,
    signatures: dict[tuple[int, int], Signature],
) -> dict[tuple[int, int, int], list[Started] | None]:
    """By rank, thread and begin, what calls started; None: of some it is not known what they move.
    Only the set-up has the datatype: of the rank's set-ups of this size, all must have one."""
    samples = sampled(connection)
    names = samples.texts.texts
    set_up: dict[Hashable, set[Signature]] = defaultdict(set)
    calls = samples.calls
    calls = calls.take(np.flatnonzero(samples.texts.among(calls.call, PREPARED)))
    for rank, call, comm, size, number in zip(
        calls.world_rank.tolist(), calls.call.tolist(), calls.communicator.tolist(),
        calls.bytes.tolist(), calls.signature.tolist(),
    ):
        if signature := signatures.get((rank, number)):
            set_up[rank, names[call], comm, size].add(signature)
    found: dict[tuple[int, int, int], list[Started] | None] = {}
    rows = samples.messages
    rows = rows.take(np.flatnonzero(samples.texts.among(rows.call, PREPARED)))
    for rank, thread, begin, call, number, peer, tag, nth, size, completed in zip(
        rows.world_rank.tolist(), rows.thread.tolist(), rows.start_ns.tolist(), rows.call.tolist(),
        rows.communicator.tolist(), rows.peer.tolist(), rows.tag.tolist(), rows.number.tolist(),
        rows.bytes.tolist(), rows.completed_ns.tolist(),
    ):
        place, comm = (rank, thread, begin), numbers.get((rank, number))
        whole = found.setdefault(place, [])
        known = set_up[rank, names[call], number, size] if size else {NOTHING}
        members = kit.comms[comm].members if comm is not None else ()
        if whole is None or len(known) != 1 or tag == NONE or peer not in members:
            found[place] = None
            continue
        (signature,) = known
        type_ = signature.type if size else None
        whole.append(
            Started(
                Call(
                    names[call], comm, type_, signature.elements, peer=members.index(peer), tag=tag,
                    in_place=0,
                ),
                peer, None if nth == NONE else nth, names[call] != "MPI_Recv_init",
                None if completed == NONE else completed,
            )
        )
    return found


class _Maker:
    def __init__(
        self, connection: Connection, kit: Kit, signatures: dict[tuple[int, int], Signature],
        started: dict[tuple[int, int, int], list[Started] | None],
    ) -> None:
        self.kit, self.signatures, self.started = kit, signatures, started
        self.counts, self.buffers = counts_of(connection), buffers_of(connection)
        self.received = received_of(connection)
        self.sleep, self.polls = Sleep(connection), Polls(connection)
        self.operations: dict[tuple[int, int, int], Operation] = {}  # by rank, thread and begin
        self.threaded: set[int] = set()  # ranks with several threads
        self.places = [{rank: at for at, rank in enumerate(comm.members)} for comm in kit.comms]
        self.calls: dict[Call, int] = {}
        self.vectors: dict[tuple[int, ...], int] = {}

    def add_collectives(
        self, samples: Sampled, set_ups: list[Row], numbers: dict[tuple[int, int], int]
    ) -> None:
        """The starts of persistent collectives: of the n-th that was set up on a communicator, if
        the set-up that was sampled as the n-th is one like it. `set_ups`: of the whole run."""
        vectors, starts, names = self._vectors_of(set_ups), samples.starts, samples.texts.texts
        known: dict[tuple[int, int | None, int], Row] = {}
        nth: Counter[tuple[int, int | None]] = Counter()
        for row in set_ups:
            nth[row.rank, row.comm] += 1
            known[row.rank, row.comm, nth[row.rank, row.comm]] = row
            operation = (row.comm or 0, nth[row.rank, row.comm])
            self.operations[row.rank, row.thread, row.start_ns] = operation
        rows = list(
            zip(
                starts.world_rank.tolist(), starts.thread.tolist(), starts.start_ns.tolist(),
                starts.call.tolist(), starts.communicator.tolist(), starts.operation.tolist(),
                starts.number.tolist(), starts.root.tolist(), starts.bytes.tolist(),
                starts.completed_ns.tolist(),
            )
        )
        unseen = {  # more were set up than were sampled: the n-th is another one
            (rank, number) for rank, _, _, _, number, place, *_ in rows
            if place > nth[rank, numbers.get((rank, number))]
        }
        for rank, thread, begin, call, number, place, start, root, size, completed in rows:
            comm = numbers.get((rank, number))
            own = known.get((rank, comm, place)) if (rank, number) not in unseen else None
            whole = self.started.setdefault((rank, thread, begin), [])
            is_like = own and (own.call, own.bytes, own.root) == (
                names[call], max(size, 0), None if root == NONE else root
            )
            if whole is None or not own or not is_like or own.bytes and not self._signature(own):
                self.started[rank, thread, begin] = None
                continue
            whole.append(
                Started(
                    self._call(own, vectors), rank, start, True,
                    None if completed == NONE else completed, (comm or 0, place), own.sequence,
                )
            )

    def take(self, rows: list[Row], alignment: Alignment) -> None:
        threads = {(row.rank, row.thread) for row in rows}
        ranks = Counter(rank for rank, _ in threads)
        self.threaded = {rank for rank, number in ranks.items() if number > 1}
        rows = self._known(rows)
        while len(whole := self._whole(rows)) < len(rows):
            rows = whole
        vectors = self._vectors_of(rows)
        by_thread: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for row in rows:
            by_thread[row.rank, row.thread].append(row)
        begins_ns = {
            thread: alignment.aligned_ns(own[0].rank, own[0].start_ns)
            for thread, own in by_thread.items()
        }
        first_ns = min(begins_ns.values(), default=0)
        self.kit.programs = {
            thread: self._program(own, vectors, begins_ns[thread] - first_ns)
            for thread, own in by_thread.items()
        }
        self.kit.calls, self.kit.vectors = list(self.calls), list(self.vectors)
        self.kit.made = Counter(
            self.kit.calls[made.call].name for own in self.kit.programs.values() for made in own
        )

    def _leave_out(self, row: Row, why: str) -> None:
        self.kit.left_out[row.call, why] += 1

    def _known(self, rows: list[Row]) -> list[Row]:
        kept = []
        for row in rows:
            why = self._why_not(row, KINDS.get(row.call))
            if why:
                self._leave_out(row, why)
            else:
                kept.append(row)
        return kept

    def _why_not(self, row: Row, kind: str | None) -> str | None:
        """The reason for which a call cannot be made again, by what its record has."""
        if not kind:
            if "eighbor" in row.call:
                return NEIGHBORS
            return UNKNOWN
        if row.rank in self.threaded and (
            kind == PREPARING and row.sequence is not None
            or any(part.operation for part in self._started(row))
        ):
            return PERSISTENT
        if kind == RESTARTING:
            return None if self._started(row) else UNKNOWN_START
        if kind not in ON_NONE and row.comm is None:
            return INTER
        if kind in (FINDING, MATCHING, TAKING) and (row.number is None or row.peer is None):
            return UNSEEN
        if not row.bytes or kind in (*ON_NONE, FINDING, MATCHING):
            return None
        is_unknown = stem(row.call) in COUNTED and not self._counts(row)
        return UNEQUAL if is_unknown or not self._signature(row) else None

    def _started(self, row: Row) -> list[Started]:
        return self.started.get((row.rank, row.thread, row.start_ns)) or []

    def _signature(self, row: Row) -> Signature | None:
        return self.signatures.get((row.rank, row.signature or 0))

    def _buffers(self, row: Row) -> tuple[int | None, int | None]:
        return self.buffers.get((row.rank, row.signature or 0), NO_BUFFERS)

    def _counts(self, row: Row) -> tuple[int, ...]:
        """As many zeros where the call moves nothing."""
        return self.counts.get((row.rank, row.signature or 0), ())

    def _whole(self, rows: list[Row]) -> list[Row]:
        """Without the parts of collectives and messages whose other parts are not there."""
        members: Counter[Hashable] = Counter()
        sides: Counter[Hashable] = Counter()  # sent less received: 0 if both are there
        once: Counter[Hashable] = Counter()
        matched: dict[str, set[Hashable]] = {MATCHING: set(), TAKING: set()}
        for row in rows:
            if KINDS[row.call] in matched:
                matched[KINDS[row.call]].add((row.thread, received_by(row)))
            for collective, _ in self._collectives(row):
                members[collective] += 1
            for sign, key in self._halves(row):
                once[sign, key] += 1
        kept = []
        for row in rows:
            is_there = all(
                members[collective] == (1 if comm == SELF else len(self.kit.comms[comm].members))
                for collective, comm in self._collectives(row)
            )
            kind = KINDS[row.call]
            if kind in (FINDING, MATCHING):
                is_there = all(once[sign, received_by(row)] for sign in (1, -1))
            if kind in matched:
                key = row.thread, received_by(row)
                is_there = is_there and all(key in keys for keys in matched.values())
            for sign, key in self._halves(row):
                sides[sign, key] += 1  # the n-th on one side has an n-th on the other
                is_there = is_there and sides[sign, key] <= once[-sign, key]
            if is_there:
                kept.append(row)
            else:
                self._leave_out(row, CUT)
        return kept

    def _collectives(self, row: Row) -> Iterator[tuple[Hashable, int]]:
        """The collective that a call is, and the persistent ones that it starts, each with its
        communicator."""
        if row.sequence is not None:
            yield self._operation(row), row.comm or 0
        for part in self._started(row):
            if part.operation:
                comm, place = part.operation
                own = row.rank if comm == SELF else -1
                yield (comm, place, part.number, part.sequence, own), comm

    def _operation(self, row: Row) -> Hashable:
        own = row.rank if row.comm == SELF else -1
        return row.comm, row.sequence, row.call, own

    def _halves(self, row: Row) -> Iterator[tuple[int, Hashable]]:
        """The messages that a call sends (1) and receives (-1)."""
        kind = KINDS[row.call]
        if row.sequence is not None or kind in (
            COMPLETING, PREPARING, FREEING, FINDING, MATCHING
        ):
            return
        for part in self._started(row) if kind == RESTARTING else ():
            if part.operation:
                continue
            ends = (row.rank, part.peer) if part.is_sent else (part.peer, row.rank)
            yield 1 if part.is_sent else -1, (part.call.comm, *ends, part.call.tag, part.number)
        if kind == RESTARTING:
            return
        if row.call in RECEIVES or kind == TAKING:
            if row.peer is not None:  # else from MPI_PROC_NULL
                yield -1, received_by(row)
            return
        if row.peer is not None:
            yield 1, sent_by(row)
        got = self.received.get((row.rank, row.thread, row.start_ns))
        if got:
            yield -1, (row.comm, got.peer, row.rank, got.tag, got.number)

    def _vectors_of(self, rows: list[Row]) -> dict[Hashable, Vectors]:
        """By operation and rank."""
        parts: dict[Hashable, dict[int, Row]] = defaultdict(dict)
        for row in rows:
            if row.sequence is not None and stem(row.call) in VECTORED:
                parts[self._operation(row)][row.rank] = row
        found: dict[Hashable, Vectors] = {}
        for operation, own in parts.items():
            members = self.kit.comms[operation[0]].members or tuple(own)  # type: ignore[index]
            sides = [own[rank] for rank in members if rank in own]
            if len(sides) == len(members):
                for rank, vectors in zip(members, self._vectors(stem(sides[0].call), sides)):
                    found[operation, rank] = vectors
        return found

    def _vectors(self, name: str, sides: list[Row]) -> list[Vectors]:
        """A collective's, by the calls of all ranks."""
        signatures = [self._signature(row) or NOTHING for row in sides]
        elements = [own.elements if row.bytes else 0 for own, row in zip(signatures, sides)]
        if name.startswith("alltoall"):
            return self._exchanged(sides, signatures)
        root = sides[0].root
        if name == "scatterv" and root is not None:
            others = sum(elements) - elements[root]  # the root's elements are those of all
            elements[root] = max(0, elements[root] - others)
            return [Vectors(self._vector(elements), elements=own) for own in elements]
        if name == "reduce_scatter":
            elements = list(self._counts(sides[0])) or [0] * len(sides)
        return [Vectors(self._vector(elements))] * len(sides)

    def _exchanged(self, sides: list[Row], signatures: list[Signature]) -> list[Vectors]:
        """Each rank receives what the others send; in bytes where datatypes differ in size."""
        nothing = (0,) * len(sides)
        sent = [self._counts(row) if row.bytes else nothing for row in sides]
        sizes = [self.kit.types[own.type].bytes if row.bytes else 0
                 for own, row in zip(signatures, sides)]
        in_bytes = None
        if len({*sizes} - {0}) > 1:
            sent = [tuple(count * size for count in own) for own, size in zip(sent, sizes)]
            in_bytes = self._type(BYTES)
        in_place = any(own.is_in_place for own in signatures)
        received = sent if in_place else list(zip(*sent))
        return [
            Vectors(self._vector(own), self._vector(others), in_bytes)
            for own, others in zip(sent, received)
        ]

    def _vector(self, counts: Iterable[int]) -> int:
        return self.vectors.setdefault(tuple(counts), len(self.vectors))

    def _type(self, type_: Type) -> int:
        if type_ not in self.kit.types:
            self.kit.types.append(type_)
        return self.kit.types.index(type_)

    def _program(
        self, rows: list[Row], vectors: dict[Hashable, Vectors], late_ns: int
    ) -> list[Made]:
        """late_ns: by how much the thread's first call comes after the first of all."""
        pauses = self.polls.pauses(rows)
        wanted = [
            (Call(row.call) if KINDS[row.call] in ON_NONE else self._call(row, vectors))._replace(
                pause_ns=pauses.get(row.call)
            )
            for row in rows
        ]
        memory = self._memory(rows, wanted)
        thread = _Thread(
            Counter(
                part.operation for row in rows for part in self._started(row) if part.operation
            )
        )
        made: list[tuple[Call | Persistent, tuple[int, ...]]] = []
        own: list[Row] = []
        ends_ns = [rows[0].start_ns - late_ns]  # of the call before each
        for row, without in zip(rows, wanted):
            kind, call = KINDS[row.call], memory.placed(without, self._buffers(row))
            if kind == PREPARING:
                operation = self.operations.get((row.rank, row.thread, row.start_ns))
                if not operation and call.peer is None:
                    # not MPI_PROC_NULL: MPICH 4.0.2 hangs in a persistent Bcast after such a one
                    call = call._replace(peer=self.places[call.comm or 0].get(row.rank, 0))
                persistent = thread.slots.set_up(call, operation)
                made.append((persistent, (persistent.request,)))
            else:
                requests = thread.requests_of(row, kind, self._started(row), received_by(row))
                if not requests and kind in NOTHING_LEFT:
                    self._leave_out(row, NOTHING_LEFT[kind])
                    continue
                made.append((call, requests))
            own.append(row)
            ends_ns.append(row.end_ns)
        for name in thread.late.values():
            self.kit.late[name] += 1
        if thread.slots.before:
            self.kit.before[rows[0].rank, rows[0].thread] = [
                Made(0, self._number(before.as_made), (before.request,))
                for before in thread.slots.set_up_before()
            ]
        calls = [self._number(call) for call, _ in made]
        asleep = self.sleep.calls_of(
            (rows[0].rank, rows[0].thread), ends_ns, [row.start_ns for row in own], calls
        )
        return [
            Made(self.polls.gap_ns(row, end_ns), call, requests, call in asleep)
            for row, end_ns, call, (_, requests) in zip(own, ends_ns, calls, made)
        ]

    def _number(self, call: Call | Persistent) -> int:
        return self.calls.setdefault(
            call.as_made if isinstance(call, Persistent) else call, len(self.calls)
        )

    def _memory(self, rows: list[Row], calls: list[Call]) -> Memory:
        buffers, known = [], list(self.vectors)
        for row, call in zip(rows, calls):
            both = self._buffers(row)
            if both != NO_BUFFERS:
                sizes = spans(self.kit, known, call)
                buffers += [(at, size) for at, size in zip(both, sizes) if at is not None]
        return Memory(buffers)

    def _call(self, row: Row, vectors: dict[Hashable, Vectors]) -> Call:
        """Without its buffers."""
        signature = self._signature(row) or NOTHING
        comm = row.comm or 0
        place = self.places[comm]
        call = Call(
            row.call, comm, signature.type if row.bytes else None, signature.elements, signature.op,
            row.root, place.get(row.peer) if row.peer is not None else None,
            (row.tag or 0) if row.sequence is None else None, int(signature.is_in_place),
        )
        if row.sequence is not None:
            found = vectors.get((self._operation(row), row.rank), NO_VECTORS)
            return call._replace(
                vector=found.sent, received_vector=found.received,
                type=call.type if found.type is None else found.type,
                elements=call.elements if found.elements is None else found.elements,
            )
        if row.call != "MPI_Sendrecv":
            return call
        got = self.received.get((row.rank, row.thread, row.start_ns))
        if not got:
            return call
        size = self.kit.types[signature.type].bytes if row.bytes else 0
        fits = size and got.bytes % size == 0
        return call._replace(
            received_type=signature.type if fits else None,
            received_count=got.bytes // size if fits else got.bytes,
            received_peer=place.get(got.peer), received_tag=got.tag or 0,
        )


class _Thread:
    """The requests of a thread, call after call."""

    def __init__(self, starts: Counter[Operation]) -> None:
        self.slots = Slots(starts)
        self.open: dict[int, list[int]] = defaultdict(list)  # requests, by when they are completed
        self.late: dict[int, str] = {}  # the calls of those that are open
        self.matched: dict[Hashable, int] = {}  # messages that a probe has taken

    def requests_of(
        self, row: Row, kind: str, started: list[Started], message: Hashable
    ) -> tuple[int, ...]:
        """The requests that the call starts, completes, frees or finds."""
        if kind == COMPLETING:
            return self._completed(row.end_ns)
        if kind == RESTARTING:
            return tuple(
                self._opened(
                    self.slots.start(part.call, part.operation), part.completed_ns, part.call.name
                )
                for part in started
            )
        if kind == FREEING:
            freed = self.slots.free_one()
            return () if freed is None else (freed,)
        if kind == STARTING:
            return (self._opened(self.slots.take(), row.completed_ns, row.call),)
        if kind == MATCHING:
            self.matched[message] = self.slots.take()
            return (self.matched[message],)
        if kind != TAKING:
            return ()
        taken = self.matched.pop(message, None)
        if taken is None:
            return ()
        if row.call == "MPI_Imrecv":
            self._opened(taken, row.completed_ns, row.call)
        else:
            self.slots.give_back(taken)
        return (taken,)

    def _completed(self, end_ns: int) -> tuple[int, ...]:
        requests = tuple(self.open.pop(end_ns, ()))
        for request in requests:
            self.slots.complete(request)
            del self.late[request]
        return requests

    def _opened(self, request: int, completed_ns: int | None, name: str) -> int:
        self.open[completed_ns or 0].append(request)
        self.late[request] = name
        return request
