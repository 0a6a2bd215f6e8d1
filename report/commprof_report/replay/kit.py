"""A kit: the traffic of a job in one file, for commprof-replay, without its program and its data.

The file is text, compressed by gzip. Its lines, with - where there is no value:

    commprof-kit 1
    sha256 HEX                                     of all lines that follow
    library TEXT                                   of MPI, that the job used
    ranks N
    window NANOSECONDS                             time that the kit covers
    recorded NANOSECONDS ASKED WHY                 of the record, if one was asked for; why not all
    left-out CALLS NAME WHY                        what is not in it
    late CALLS NAME                                completed only after the last call
    comm NUMBER PARENT ROUND HOW MEMBERS           HOW: world, self, dup or split; one call on the
                                                   parent makes those of one round
    type NUMBER NAME BYTES EXTENT BLOCKS           MPI's name, or the constructor of a derived type
    vector NUMBER COUNT ...                        of MPI_Allgatherv and its like, one for each
                                                   rank; of MPI_Alltoallw in bytes
    call NUMBER NAME COMM TYPE COUNT OP ROOT PEER TAG IN_PLACE VECTOR TYPE COUNT PEER TAG VECTOR
         AT AT PAUSE                               after the first VECTOR: what MPI_Sendrecv and
                                                   MPI_Alltoallv receive. AT: bytes in the thread's
                                                   memory at which what is sent, or the only buffer,
                                                   begins, and what is received. PAUSE:
                                                   nanoseconds between polls that find nothing
    program RANK THREAD BEFORE                     its first BEFORE calls set up persistent requests
                                                   and are not counted
    GAP CALL [REQUEST ...]                         its calls in order: nanoseconds since the one
                                                   before (its first: since the first of all
                                                   threads), and the requests that this one sets
                                                   up, starts, completes or frees. A message that
                                                   MPI_Mprobe finds has such a number, too.
                                                   ~GAP: the thread slept, or read files

Peers and roots are ranks in the communicator. Requests are numbers that a thread uses again.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..base.errors import ReportError

VERSION = 1
NONE = "-"
WORLD, SELF = 0, 1  # numbers of communicators
MOST_BYTES = 1 << 30  # of a kit that is read, as text
MOST_COUNT = 1 << 31
MOST_MEMORY = 1 << 40  # bytes of a thread
BLOCKING, STARTING, COMPLETING = "blocking", "starting", "completing"
PREPARING, RESTARTING, FREEING = "preparing", "restarting", "freeing"  # persistent requests
FINDING, MATCHING, TAKING = "finding", "matching", "taking"  # probes; receives of what they match
COLLECTIVES = (
    "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
    "Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter",
    "Reduce_scatter_block", "Scan", "Exscan",
)
MESSAGES = ("Send", "Ssend", "Rsend", "Recv")
KINDS = {
    **{f"MPI_{name}": BLOCKING for name in (*COLLECTIVES, *MESSAGES, "Sendrecv")},
    **{f"MPI_I{name.lower()}": STARTING for name in (*COLLECTIVES, *MESSAGES)},
    **{
        f"MPI_{verb}{which}": COMPLETING for verb in ("Wait", "Test")
        for which in ("", "all", "any", "some")
    },
    **{f"MPI_{name}_init": PREPARING for name in (*COLLECTIVES, *MESSAGES)},
    "MPI_Start": RESTARTING, "MPI_Startall": RESTARTING, "MPI_Request_free": FREEING,
    "MPI_Probe": FINDING, "MPI_Iprobe": FINDING, "MPI_Mprobe": MATCHING, "MPI_Improbe": MATCHING,
    "MPI_Mrecv": TAKING, "MPI_Imrecv": TAKING,
}


def stem(call: str) -> str:
    """A collective's name, whether it blocks or not."""
    name = call.removeprefix("MPI_").removesuffix("_init").lower()
    return name.removeprefix("i")


class Comm(NamedTuple):
    parent: int
    round: int
    how: str  # world, self, dup, split
    members: tuple[int, ...]  # world ranks


class Type(NamedTuple):
    name: str
    bytes: int
    extent: int
    blocks: int


class Call(NamedTuple):
    """A call with its arguments; equal ones are one line of the kit. None: it has none."""

    name: str
    comm: int | None = None
    type: int | None = None
    elements: int | None = None
    op: str | None = None
    root: int | None = None
    peer: int | None = None
    tag: int | None = None
    in_place: int | None = None
    vector: int | None = None
    received_type: int | None = None
    received_count: int | None = None
    received_peer: int | None = None
    received_tag: int | None = None
    received_vector: int | None = None
    buffer_at: int | None = None
    received_at: int | None = None
    pause_ns: int | None = None


class Made(NamedTuple):
    """A call of a program."""

    gap_ns: int
    call: int
    requests: tuple[int, ...] = ()
    is_asleep: bool = False  # in the gap: the thread slept, or read files


class Record(NamedTuple):
    """The window that the job was asked to record: how much of it all ranks have."""

    ns: int  # 0: nothing, the kit is of another time
    asked_ns: int
    why: str | None  # not all


@dataclass
class Kit:
    library: str
    ranks: int
    window_ns: int
    record: Record | None = None
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)  # call, why
    # made, but completed after the last call: in the job by another thread, or never
    late: Counter[str] = field(default_factory=Counter)
    comms: list[Comm] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)
    vectors: list[tuple[int, ...]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    programs: dict[tuple[int, int], list[Made]] = field(default_factory=dict)  # by rank and thread
    before: dict[tuple[int, int], list[Made]] = field(default_factory=dict)  # uncounted set-ups

    @property
    def made(self) -> Counter[str]:
        """How often each call is made, by all ranks."""
        numbers = Counter(made.call for program in self.programs.values() for made in program)
        names: Counter[str] = Counter()
        for number, count in numbers.items():
            names[self.calls[number].name] += count
        return names


def lines(kit: Kit) -> Iterator[str]:
    yield f"library {kit.library}"
    yield f"ranks {kit.ranks}"
    yield f"window {kit.window_ns}"
    if kit.record:
        yield f"recorded {_words(kit.record)}"
    for (name, why), calls in sorted(kit.left_out.items()):
        yield f"left-out {calls} {name} {why}"
    for name, calls in sorted(kit.late.items()):
        yield f"late {calls} {name}"
    for number, comm in enumerate(kit.comms):
        members = ",".join(map(str, comm.members)) or NONE
        yield f"comm {number} {comm.parent} {comm.round} {comm.how} {members}"
    for number, kind in enumerate(kit.types):
        yield f"type {number} {_words(kind)}"
    for number, vector in enumerate(kit.vectors):
        yield f"vector {number} {_words(vector)}"
    for number, call in enumerate(kit.calls):
        yield f"call {number} {_words(call)}"
    for (rank, thread), program in sorted(kit.programs.items()):
        before = kit.before.get((rank, thread), [])
        yield f"program {rank} {thread} {len(before)}"
        for made in (*before, *program):
            yield "~" * made.is_asleep + _words((made.gap_ns, made.call, *made.requests))


def _words(values: Iterable[object]) -> str:
    return " ".join(NONE if value is None else str(value) for value in values)


def write(kit: Kit, path: Path) -> str:
    """Returns the SHA-256, which names the kit: equal traffic has an equal one."""
    text = "".join(f"{line}\n" for line in lines(kit)).encode()
    digest = hashlib.sha256(text).hexdigest()
    head = f"commprof-kit {VERSION}\nsha256 {digest}\n".encode()
    path.write_bytes(gzip.compress(head + text, mtime=0))
    return digest


class _Bad(Exception):
    pass


def read(path: Path) -> tuple[Kit, str]:
    """The kit and its SHA-256. Anybody may have written the file: what does not fit is an error."""
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ReportError(path, f"cannot be read as a kit: {error}") from None
    head, _, text = data.partition(b"\n")
    digest_line, _, text = text.partition(b"\n")
    if not head.startswith(b"commprof-kit "):
        raise ReportError(path, "is no kit of commprof's")
    if head != f"commprof-kit {VERSION}".encode():
        raise ReportError(path, f"is a kit of version {head[13:40].decode(errors='replace')}; "
                          f"{VERSION} is understood")
    digest = hashlib.sha256(text).hexdigest()
    if len(data) > MOST_BYTES or digest_line != f"sha256 {digest}".encode():
        raise ReportError(path, "is damaged: its SHA-256 is another one")
    number = 0
    try:
        parser = _Parser()
        for number, line in enumerate(text.decode().splitlines(), 3):
            parser.take(line)
        return parser.checked(), digest
    except (_Bad, ValueError, IndexError, UnicodeDecodeError) as error:
        raise ReportError(path, f"line {number} is not as in a kit: {error}") from None


def _number(word: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", word):
        raise _Bad(f"{word[:40]!r} is no number")
    return int(word)


def _maybe(word: str) -> int | None:
    return None if word == NONE else _number(word)


class _Parser:
    def __init__(self) -> None:
        self.kit = Kit("", 0, 0)
        self.program: list[Made] | None = None
        self.before: list[Made] = []  # of this program
        self.left = 0  # so many more of them

    def take(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        is_asleep = line.startswith("~")
        if is_asleep or kind[:1].isdigit():
            gap_ns, call, *requests = map(_number, line[is_asleep:].split())
            if self.program is None:
                raise _Bad("a call outside programs")
            (self.before if self.left else self.program).append(
                Made(gap_ns, call, tuple(requests), is_asleep)
            )
            self.left -= self.left > 0
            return
        take = getattr(self, "_take_" + kind.replace("-", "_"), None)
        if not take:
            raise _Bad(f"{kind[:40]!r} is unknown")
        take(rest)

    def _take_library(self, rest: str) -> None:
        self.kit.library = rest

    def _take_ranks(self, rest: str) -> None:
        self.kit.ranks = _number(rest)

    def _take_window(self, rest: str) -> None:
        self.kit.window_ns = _number(rest)

    def _take_recorded(self, rest: str) -> None:
        ns, asked_ns, why = rest.split(" ", 2)
        self.kit.record = Record(_number(ns), _number(asked_ns), None if why == NONE else why)
        if min(self.kit.record[:2]) < 0:
            raise _Bad("a record is shorter than nothing")

    def _take_left_out(self, rest: str) -> None:
        calls, name, why = rest.split(" ", 2)
        self.kit.left_out[name, why] += _number(calls)

    def _take_late(self, rest: str) -> None:
        calls, name = rest.split()
        self.kit.late[name] += _number(calls)

    def _take_comm(self, rest: str) -> None:
        number, parent, round_, how, members = rest.split()
        self._in_order(number, self.kit.comms)
        ranks = () if members == NONE else tuple(map(_number, members.split(",")))
        self.kit.comms.append(Comm(_number(parent), _number(round_), how, ranks))

    def _take_type(self, rest: str) -> None:
        number, name, *sizes = rest.split()
        self._in_order(number, self.kit.types)
        size, extent, blocks = map(_number, sizes)
        self.kit.types.append(Type(name, size, extent, blocks))

    def _take_vector(self, rest: str) -> None:
        number, *counts = map(_number, rest.split())
        self._in_order(str(number), self.kit.vectors)
        self.kit.vectors.append(tuple(counts))

    def _take_call(self, rest: str) -> None:
        number, name, comm, type_, count, op, *others = rest.split()
        self._in_order(number, self.kit.calls)
        numbers = list(map(_maybe, others))
        if len(numbers) != len(Call._fields) - 5:
            raise _Bad("a call has not all words")
        self.kit.calls.append(
            Call(
                name, _maybe(comm), _maybe(type_), _maybe(count), None if op == NONE else op,
                *numbers,
            )
        )

    def _take_program(self, rest: str) -> None:
        rank, thread, self.left = map(_number, rest.split())
        if (rank, thread) in self.kit.programs:
            raise _Bad("a thread has two programs")
        self.program = self.kit.programs[rank, thread] = []
        if self.left:
            self.before = self.kit.before[rank, thread] = []

    def _in_order(self, number: str, rows: list) -> None:
        if _number(number) != len(rows):
            raise _Bad("numbers are not in order")

    def checked(self) -> Kit:
        """Every number that stands for a row or a rank does."""
        kit = self.kit
        self._check_comms()
        for number, call in enumerate(kit.calls):
            size = self._size(call.comm)
            within = (
                (call.comm, len(kit.comms)), (call.type, len(kit.types)),
                (call.received_type, len(kit.types)), (call.vector, len(kit.vectors)),
                (call.root, size), (call.peer, size), (call.received_peer, size),
                (call.elements, MOST_COUNT), (call.received_count, MOST_COUNT), (call.in_place, 2),
                (call.tag, MOST_COUNT), (call.received_tag, MOST_COUNT),
                (call.received_vector, len(kit.vectors)), (call.buffer_at, MOST_MEMORY),
                (call.received_at, MOST_MEMORY), (call.pause_ns, MOST_COUNT),
            )
            is_inside = all(value is None or 0 <= value < most for value, most in within)
            if call.name not in KINDS or not is_inside or any(
                vector is not None and len(kit.vectors[vector]) != size
                for vector in (call.vector, call.received_vector)
            ):
                raise _Bad(f"call {number}")
        for (rank, thread), program in (*kit.programs.items(), *kit.before.items()):
            for made in program:
                is_inside = 0 <= made.call < len(kit.calls) and 0 <= rank < kit.ranks
                if not is_inside or min(made.gap_ns, *made.requests, 0) < 0:
                    raise _Bad(f"a call of rank {rank}, thread {thread}")
        return kit

    def _size(self, comm: int | None) -> int:
        comms = self.kit.comms
        if comm is None or not 0 <= comm < len(comms):
            return 0
        return 1 if comm == SELF else len(comms[comm].members)

    def _check_comms(self) -> None:
        """One call on the parent makes all of a round."""
        comms, ranks = self.kit.comms, self.kit.ranks
        everybody = comms[WORLD].members if comms else ()
        if len(everybody) != ranks or comms[:2] != [
            Comm(WORLD, 0, "world", tuple(range(len(everybody)))), Comm(SELF, 0, "self", ())
        ]:
            raise _Bad("the first communicators are not world and self")
        free: set[int] = set()  # ranks of the parent that are in no communicator of this round
        for number, comm in enumerate(comms[2:], 2):
            if not (0 <= comm.parent < number) or comm.parent == SELF:
                raise _Bad(f"communicator {number} has no parent")
            is_first, members = comm.round == number, set(comm.members)
            if is_first:
                free = set(comms[comm.parent].members)
            if comm.how == "dup":
                fits = is_first and comm.members == comms[comm.parent].members
            else:
                fits = comm.how == "split" and (is_first or comm[:3] == comms[number - 1][:3])
            if not fits or not members <= free or len(members) != len(comm.members):
                raise _Bad(f"communicator {number} cannot be made")
            free -= members
