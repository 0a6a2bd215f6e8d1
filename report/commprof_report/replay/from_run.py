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
from typing import Any, Callable, Dict, List, Tuple

from ..base import by, units
from ..run import Alignment, FAR_NS, Run, Sampled, align
from ..run.sampled import sampled
from .kit import (
    BLOCKING,
    COMPLETING,
    FINDING,
    FREEING,
    KINDS,
    MATCHING,
    PREPARING,
    RESTARTING,
    SELF,
    STARTING,
    TAKING,
    Call,
    Kit,
    Made,
)
from .traffic import (
    BYTES,
    Memory,
    NOTHING,
    NO_BUFFERS,
    Operation,
    Persistent,
    Polls,
    RECEIVES,
    Requests,
    Row,
    Signature,
    Sleep,
    Started,
    communicators,
    place_of,
    received_by,
    received_of,
    recorded,
    rows_in,
    rows_of,
    rows_with,
    sent_by,
    spans,
    types_of,
    window,
    with_senders,
)

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
    COMPLETING: OPEN,
    RESTARTING: UNKNOWN_START,
    FREEING: "frees nothing that is in the kit",
    TAKING: UNSEEN,
}
PREPARED = [name for name, kind in KINDS.items() if kind == PREPARING]


# By place: what a call started; None: of some it is not known.
Starts = Dict[Tuple[int, int, int], List[Any]]
Vectors = Dict[Hashable, Dict[str, int]]  # by operation and rank: arguments in place of the call's


def kit_of(run: Run) -> Kit:
    alignment = align(run.connection)
    record, (since_ns, until_ns) = recorded(run.connection, alignment)
    if not record or not record.ns:
        since_ns, until_ns = window(run.connection, alignment)
    versions = run.connection.execute("SELECT DISTINCT value FROM fact WHERE key = 'mpi_version'")
    library = ", ".join(sorted(units.library_name(version) for (version,) in versions))
    made = Kit(library or "unknown", run.world_size, max(0, until_ns - since_ns), record)
    made.comms, numbers = communicators(run.connection, run.world_size)
    made.types, signatures = types_of(run.connection)
    rows = list(rows_of(run.connection, alignment, numbers, since_ns, until_ns))
    started = started_of(run.connection, numbers, made, signatures)
    maker = _Maker(run.connection, made, signatures, started)
    if len(sampled(run.connection).starts):
        everything = rows_of(run.connection, alignment, numbers, -FAR_NS, FAR_NS)
        set_ups = [
            row
            for row in everything
            if KINDS.get(row.call) == PREPARING and row.sequence is not None
        ]
        maker.add_collectives(sampled(run.connection), set_ups, numbers)
    maker.take(with_senders(rows, alignment), alignment)
    return made


def started_of(
    connection: Connection,
    numbers: dict[tuple[int, int], int],
    kit: Kit,
    signatures: dict[tuple[int, int], Signature],
) -> Starts:
    """The operations that calls started; None: it is not known what it moves. Only the set-up has
    the datatype: of the rank's set-ups of this size, all must have one."""
    samples = sampled(connection)
    set_up: dict[Hashable, set[tuple[int, int]]] = defaultdict(set)
    for row in rows_with(samples.calls, samples.texts, "call", *PREPARED):
        if signature := signatures.get((row.world_rank, row.signature)):
            set_up[row.world_rank, row.call, row.communicator, row.bytes].add(signature[:2])
    found: Starts = defaultdict(list)
    for row in rows_with(samples.messages, samples.texts, "call", *PREPARED):
        comm = numbers.get((row.world_rank, row.communicator))
        known = set_up[row.world_rank, row.call, row.communicator, row.bytes]
        known = known if row.bytes else {(0, 0)}
        members = kit.comms[comm].members if comm is not None else ()
        started = None
        if len(known) == 1 and row.tag is not None and row.peer in members:
            ((type_, elements),) = known
            call = Call(
                row.call,
                comm,
                type_ if row.bytes else None,
                elements,
                peer=members.index(row.peer),
                tag=row.tag,
                in_place=0,
            )
            started = Started(call, row.peer, row.number, row.completed_ns)
        found[place_of(row)].append(started)
    return found


class _Maker:
    def __init__(
        self,
        connection: Connection,
        kit: Kit,
        signatures: dict[tuple[int, int], Signature],
        started: Starts,
    ) -> None:
        self.kit, self.signatures, self.started = kit, signatures, started
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
        vectors = self._vectors_of(set_ups)
        known: dict[tuple[int, int | None, int], Row] = {}
        nth: Counter[tuple[int, int | None]] = Counter()
        for row in set_ups:
            nth[row.world_rank, row.comm] += 1
            place = nth[row.world_rank, row.comm]
            known[row.world_rank, row.comm, place] = row
            self.operations[place_of(row)] = row.comm or 0, place
        starts = [
            (row, row.world_rank, numbers.get((row.world_rank, row.communicator)))
            for row in rows_in(samples.starts, samples.texts)
        ]
        unseen = {  # more were set up than were sampled: the n-th is another one
            (rank, row.communicator)
            for row, rank, comm in starts
            if row.operation > nth[rank, comm]
        }
        for row, rank, comm in starts:
            own = known.get((rank, comm, row.operation))
            is_known = (
                own
                and (own.call, own.bytes, own.root) == (row.call, row.bytes or 0, row.root)
                and (rank, row.communicator) not in unseen
                and not (own.bytes and self._signature(own) is NOTHING)
            )
            self.started[place_of(row)].append(
                Started(
                    self._call(own, vectors),
                    rank,
                    row.number,
                    row.completed_ns,
                    (comm or 0, row.operation),
                    own.sequence,
                )
                if own and is_known
                else None
            )

    def take(self, rows: list[Row], alignment: Alignment) -> None:
        ranks = Counter(rank for rank, _ in {(row.world_rank, row.thread) for row in rows})
        self.threaded = {rank for rank, number in ranks.items() if number > 1}
        rows = self._kept(rows, self._why_not)
        while len(whole := self._whole(rows)) < len(rows):
            rows = whole
        vectors = self._vectors_of(rows)
        by_thread = by(rows, lambda row: (row.world_rank, row.thread))
        begins_ns = {
            thread: alignment.aligned_ns(own[0].world_rank, own[0].start_ns)
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

    def _kept(self, rows: Iterable[Row], why_not: Callable[[Row], str | None]) -> list[Row]:
        """Without those that are left out, which are counted."""
        kept = []
        for row in rows:
            if why := why_not(row):
                self.kit.left_out[row.call, why] += 1
            else:
                kept.append(row)
        return kept

    def _why_not(self, row: Row) -> str | None:
        """The reason for which a call cannot be made again, by what its record has."""
        kind = KINDS.get(row.call)
        if not kind:
            return NEIGHBORS if "eighbor" in row.call else UNKNOWN
        if row.world_rank in self.threaded and (
            kind == PREPARING
            and row.sequence is not None
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
        signature = self._signature(row)
        is_unknown = units.operation(row.call) in COUNTED and not signature.counts
        return UNEQUAL if is_unknown or signature is NOTHING else None

    def _started(self, row: Row) -> list[Started]:
        started = self.started.get(place_of(row), [])
        return [] if None in started else started

    def _signature(self, row: Row) -> Signature:
        return self.signatures.get((row.world_rank, row.signature or 0), NOTHING)

    def _whole(self, rows: list[Row]) -> list[Row]:
        """Without the parts of collectives and messages whose other parts are not there."""
        members = Counter(which for row in rows for which, _ in self._collectives(row))
        halves = Counter(half for row in rows for half in self._halves(row))
        matched = {
            kind: {(row.thread, received_by(row)) for row in rows if KINDS[row.call] == kind}
            for kind in (MATCHING, TAKING)
        }
        seen: Counter[Hashable] = Counter()

        def why_not(row: Row) -> str | None:
            kind, message = KINDS[row.call], received_by(row)
            own = list(self._halves(row))
            seen.update(own)  # the n-th on one side has an n-th on the other
            is_there = (
                all(
                    members[which] == (1 if comm == SELF else len(self.kit.comms[comm].members))
                    for which, comm in self._collectives(row)
                )
                and all(seen[sign, which] <= halves[-sign, which] for sign, which in own)
                and (kind not in (FINDING, MATCHING) or halves[1, message] and halves[-1, message])
                and (
                    kind not in matched
                    or all((row.thread, message) in each for each in matched.values())
                )
            )
            return None if is_there else CUT

        return self._kept(rows, why_not)

    def _collectives(self, row: Row) -> Iterator[tuple[Hashable, int]]:
        """The collective that a call is, and the persistent ones that it starts, each with its
        communicator."""
        if row.sequence is not None:
            yield self._operation(row), row.comm or 0
        for part in self._started(row):
            if part.operation:
                comm, place = part.operation
                own = row.world_rank if comm == SELF else -1
                yield (comm, place, part.number, part.sequence, own), comm

    def _operation(self, row: Row) -> Hashable:
        own = row.world_rank if row.comm == SELF else -1
        return row.comm, row.sequence, row.call, own

    def _halves(self, row: Row) -> Iterator[tuple[int, Hashable]]:
        """The messages that a call sends (1) and receives (-1)."""
        kind = KINDS[row.call]
        for part in self._started(row):
            if not part.operation:
                sign = -1 if part.call.name == "MPI_Recv_init" else 1
                ends = (row.world_rank, part.peer)[::sign]
                yield sign, (part.call.comm, *ends, part.call.tag, part.number)
        if row.sequence is not None or kind not in (BLOCKING, STARTING, TAKING):
            return
        receives = row.call in RECEIVES or kind == TAKING
        if row.peer is not None:  # else with MPI_PROC_NULL
            yield (-1, received_by(row)) if receives else (1, sent_by(row))
        got = self.received.get(place_of(row))
        if got and not receives:
            yield -1, (row.comm, got.peer, row.world_rank, got.tag, got.number)

    def _vectors_of(self, rows: list[Row]) -> Vectors:
        """By operation and rank."""
        parts = by(
            (
                row
                for row in rows
                if row.sequence is not None and units.operation(row.call) in VECTORED
            ),
            self._operation,
        )
        found: Vectors = {}
        for operation, calls in parts.items():
            own = {row.world_rank: row for row in calls}
            members = self.kit.comms[operation[0]].members or tuple(own)  # type: ignore[index]
            sides = [own[rank] for rank in members if rank in own]
            if len(sides) == len(members):
                for rank, vectors in zip(
                    members, self._vectors(units.operation(sides[0].call), sides)
                ):
                    found[operation, rank] = vectors
        return found

    def _vectors(self, name: str, sides: list[Row]) -> list[dict[str, int]]:
        """A collective's, by the calls of all ranks."""
        if name.startswith("alltoall"):
            return self._exchanged(sides)
        elements = [self._signature(row).count if row.bytes else 0 for row in sides]
        root = sides[0].root
        if name == "scatterv" and root is not None:
            others = sum(elements) - elements[root]  # the root's elements are those of all
            elements[root] = max(0, elements[root] - others)
            vector = self._vector(elements)
            return [{"vector": vector, "count": own} for own in elements]
        if name == "reduce_scatter":
            elements = list(self._signature(sides[0]).counts) or [0] * len(sides)
        return [{"vector": self._vector(elements)}] * len(sides)

    def _exchanged(self, sides: list[Row]) -> list[dict[str, int]]:
        """Each rank receives what the others send; in bytes where datatypes differ in size."""
        signatures = [self._signature(row) if row.bytes else NOTHING for row in sides]
        sent = [own.counts or (0,) * len(sides) for own in signatures]
        sizes = [self.kit.types[own.type].bytes if own.counts else 0 for own in signatures]
        in_bytes = {}
        if len({*sizes} - {0}) > 1:
            sent = [tuple(count * size for count in own) for own, size in zip(sent, sizes)]
            if BYTES not in self.kit.types:
                self.kit.types.append(BYTES)
            in_bytes = {"type": self.kit.types.index(BYTES)}
        in_place = any(self._signature(row).is_in_place for row in sides)
        received = sent if in_place else list(zip(*sent))
        return [
            {"vector": self._vector(own), "received_vector": self._vector(others), **in_bytes}
            for own, others in zip(sent, received)
        ]

    def _vector(self, counts: Iterable[int]) -> int:
        return self.vectors.setdefault(tuple(counts), len(self.vectors))

    def _program(self, rows: list[Row], vectors: Vectors, late_ns: int) -> list[Made]:
        """late_ns: by how much the thread's first call comes after the first of all."""
        pauses = self.polls.pauses(rows)
        wanted = [
            (Call(row.call) if KINDS[row.call] in ON_NONE else self._call(row, vectors))._replace(
                pause_ns=pauses.get(row.call)
            )
            for row in rows
        ]
        known = list(self.vectors)
        memory = Memory(
            [
                (at, size)
                for row, call in zip(rows, wanted)
                for both in [self._signature(row)[-2:]]
                if both != NO_BUFFERS
                for at, size in zip(both, spans(self.kit, known, call))
                if at is not None
            ]
        )
        requests = Requests(
            Counter(part.operation for row in rows for part in self._started(row) if part.operation)
        )
        made: list[tuple[Row, Call | Persistent, tuple[int, ...]]] = []
        for row, without in zip(rows, wanted):
            kind, call = KINDS[row.call], memory.placed(without, self._signature(row)[-2:])
            if kind == PREPARING:
                operation = self.operations.get(place_of(row))
                if not operation and call.peer is None:
                    # not MPI_PROC_NULL: MPICH 4.0.2 hangs in a persistent Bcast after such a one
                    call = call._replace(peer=self.places[call.comm or 0].get(row.world_rank, 0))
                persistent = requests.set_up(call, operation)
                made.append((row, persistent, (persistent.request,)))
                continue
            own = requests.of(row, kind, self._started(row), received_by(row))
            if own or kind not in NOTHING_LEFT:
                made.append((row, call, own))
            else:
                self.kit.left_out[row.call, NOTHING_LEFT[kind]] += 1
        self.kit.late.update(name for own in requests.open.values() for _, name in own)
        place = rows[0].world_rank, rows[0].thread
        if requests.before:
            # of collectives the order is the same on all ranks
            ordered = sorted(requests.before, key=lambda own: own.operation or (-1, 0))
            self.kit.before[place] = [
                Made(0, self._number(before.as_made), (before.request,)) for before in ordered
            ]
        calls = [
            self._number(call.as_made if isinstance(call, Persistent) else call)
            for _, call, _ in made
        ]
        # of the call before each
        ends_ns = [rows[0].start_ns - late_ns, *(row.end_ns for row, _, _ in made)]
        asleep = self.sleep.calls_of(place, ends_ns, [row.start_ns for row, _, _ in made], calls)
        return [
            Made(self.polls.gap_ns(row, end_ns), call, own, call in asleep)
            for (row, _, own), end_ns, call in zip(made, ends_ns, calls)
        ]

    def _number(self, call: Call) -> int:
        return self.calls.setdefault(call, len(self.calls))

    def _call(self, row: Row, vectors: Vectors) -> Call:
        """Without its buffers."""
        signature = self._signature(row)
        comm = row.comm or 0
        place = self.places[comm]
        call = Call(
            row.call,
            comm,
            signature.type if row.bytes else None,
            signature.count,
            signature.op,
            row.root,
            place.get(row.peer) if row.peer is not None else None,
            (row.tag or 0) if row.sequence is None else None,
            int(signature.is_in_place),
        )
        if row.sequence is not None:
            return call._replace(**vectors.get((self._operation(row), row.world_rank), {}))
        got = self.received.get(place_of(row))
        if row.call != "MPI_Sendrecv" or not got:
            return call
        size = self.kit.types[signature.type].bytes if row.bytes else 0
        fits = size and got.bytes % size == 0
        return call._replace(
            received_type=signature.type if fits else None,
            received_count=got.bytes // size if fits else got.bytes,
            received_peer=place.get(got.peer),
            received_tag=got.tag or 0,
        )
