"""A kit: the traffic of a job in one file, for commprof-replay, without its program and its data.

The file is text, of 256 MiB at most, in one gzip stream or as `gzip -d` makes it. Its lines, of 16
MiB at most, with - where there is no value:

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
                                                   and are not counted. In the order of ranks and
                                                   threads
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
import io
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..base.errors import ReportError
from ..base.library_files import library_text

VERSION = 1
NONE = "-"
WORLD, SELF = 0, 1  # numbers of communicators
BOUNDS = {
    name: int(number) << int(by) for name, number, by in
    re.findall(r"(\w+) = (\d+) << (\d+)", library_text("tools/replay/kit_bounds.h"))
}
MOST_COUNT = 1 << 31
MOST_MEMORY = 1 << 40  # bytes of a thread
NAME_BYTES = 39
TOO_LARGE = "a kit has 256 MiB of text at most"
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
    return call.removeprefix("MPI_").removesuffix("_init").lower().removeprefix("i")


class Comm(NamedTuple):
    parent: int
    round: int
    how: str  # world, self, dup, split
    members: Sequence[int]  # world ranks


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
    vectors: list[Sequence[int]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)  # how often each call is, by all ranks
    # what `made` sums up; not of a kit that was read, which may have millions
    programs: dict[tuple[int, int], list[Made]] = field(default_factory=dict)  # by rank and thread
    before: dict[tuple[int, int], list[Made]] = field(default_factory=dict)  # uncounted set-ups


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
    text = f"commprof-kit {VERSION}\nsha256 {digest}\n".encode() + text
    if len(text) > BOUNDS["TEXT_MOST"]:
        raise ReportError(path, f"would be too large: {TOO_LARGE}; record a shorter time")
    path.write_bytes(gzip.compress(text, mtime=0))
    return digest


def text_of(path: Path) -> bytes:
    """A kit's: the file is one gzip stream from its first byte to its last, or the text."""
    content, most = path.read_bytes(), BOUNDS["TEXT_MOST"]
    if content[:1] == b"\x1f":
        stream = zlib.decompressobj(31)
        try:
            content = stream.decompress(content, most + 1)
            is_whole = stream.eof and not stream.unused_data
        except zlib.error:
            is_whole = False
        if not is_whole and len(content) <= most:
            raise ReportError(path, "is damaged: it is not one whole gzip stream")
    if len(content) > most:
        raise ReportError(path, f"is too large: {TOO_LARGE}")
    return content


def read(path: Path) -> tuple[Kit, str]:
    """The kit, without its programs, and its SHA-256. Anybody may have written the file: what does
    not fit is an error, as in src/tools/replay/kit.c."""
    text = text_of(path)
    file = io.BytesIO(text)
    head, said = file.readline(), file.readline()
    if not head.startswith(b"commprof-kit "):
        raise ReportError(path, "is no kit of commprof's")
    if head.removesuffix(b"\n") != f"commprof-kit {VERSION}".encode():
        raise ReportError(path, f"is a kit of another version than {VERSION}")
    digest = hashlib.sha256(memoryview(text)[file.tell() :]).hexdigest()
    if said != f"sha256 {digest}\n".encode():
        raise ReportError(path, "is damaged: its SHA-256 is another one")
    number, parser = 2, _Parser()
    try:
        for number, line in enumerate(file, 3):
            parser.take(line.removesuffix(b"\n"))
        return parser.checked(), digest
    except (ValueError, IndexError) as error:
        raise ReportError(path, f"line {number}: {error}") from None


_is_number = re.compile(r"-?[0-9]{1,18}", re.ASCII).fullmatch


def _number(word: str, least: int = 0, most: int = 10**18) -> int:
    if not _is_number(word) or not least <= int(word) < most:
        raise ValueError(f"{word[:40]!r} is no number, or out of range")
    return int(word)


def _name(word: str) -> str:
    if not 0 < len(word.encode(errors="surrogateescape")) <= NAME_BYTES:
        raise ValueError(f"{word[:40]!r} is no name")
    return word


def _maybe(word: str, most: int) -> int | None:
    return None if word == NONE else _number(word, 0, most)


class _Parser:
    def __init__(self) -> None:
        self.kit = Kit("", 0, 0)
        self.lines = 0  # that are no calls of programs
        self.latest = (-1, -1)  # rank and thread of the present program
        self.left = 0  # calls to come in it that set up
        self.free: set[int] = set()  # ranks of the parent that are in no communicator of this round

    def take(self, whole: bytes) -> None:
        if len(whole) > BOUNDS["LINE_MOST"] or b"\0" in whole:
            raise ValueError("a line is too long, or has a byte that is 0")
        line = whole.decode(errors="surrogateescape")
        if "0" <= line[:1] <= "9" or line.startswith("~"):
            self._take_made(*line.removeprefix("~").split(" "))
            return
        kind, blank, rest = line.partition(" ")
        self.lines += 1
        take = getattr(self, "_take_" + kind.replace("-", "_"), None) if "_" not in kind else None
        if self.lines > BOUNDS["TABLE_LINES_MOST"] or not take or not blank:
            raise ValueError(
                f"{kind[:40]!r} is unknown, or one of too many lines before the programs"
            )
        take(rest)

    def _take_made(self, gap: str, call: str = "", *requests: str) -> None:
        _number(gap)
        name = self.kit.calls[_number(call, 0, len(self.kit.calls))].name
        if self.latest < (0, 0):
            raise ValueError("a call outside programs")
        for word in requests:
            _number(word, 0, BOUNDS["REQUESTS_MOST"] + 1)
        if self.left:
            self.left -= 1
        else:
            self.kit.made[name] += 1

    def _take_library(self, rest: str) -> None:
        self.kit.library = rest

    def _take_ranks(self, rest: str) -> None:
        if self.kit.ranks:
            raise ValueError("two numbers of ranks")
        self.kit.ranks = _number(rest, 1, BOUNDS["RANKS_MOST"] + 1)

    def _take_window(self, rest: str) -> None:
        self.kit.window_ns = _number(rest)

    def _take_recorded(self, rest: str) -> None:
        ns, asked_ns, why = rest.split(" ", 2)
        self.kit.record = Record(_number(ns), _number(asked_ns), None if why == NONE else why)

    def _take_left_out(self, rest: str) -> None:
        calls, name, why = rest.split(" ", 2)
        self.kit.left_out[_name(name), why] += _number(calls)

    def _take_late(self, rest: str) -> None:
        calls, name = rest.split(" ")
        self.kit.late[_name(name)] += _number(calls)

    def _take_comm(self, rest: str) -> None:
        number, parent, round_, how, members = rest.split(" ")
        comms = self.kit.comms
        self._in_order(number, comms)
        words = () if members == NONE else members.split(",")
        ranks = array("i", (_number(word, 0, self.kit.ranks) for word in words))
        comms.append(
            Comm(_number(parent, 0, len(comms) + 1), _number(round_, 0, len(comms) + 1), how, ranks)
        )
        self._check_comm(len(comms) - 1)

    def _take_type(self, rest: str) -> None:
        number, name, size, extent, blocks = rest.split(" ")
        self._in_order(number, self.kit.types)
        self.kit.types.append(
            Type(
                _name(name), _number(size, 0, MOST_COUNT),
                _number(extent, -MOST_COUNT, MOST_COUNT), _number(blocks, 1, MOST_COUNT),
            )
        )

    def _take_vector(self, rest: str) -> None:
        number, *words = rest.split(" ")
        self._in_order(number, self.kit.vectors)
        counts = array("i", (_number(word, 0, MOST_COUNT) for word in words))
        if sum(counts) >= MOST_COUNT:
            raise ValueError("the counts of a vector are too large")
        self.kit.vectors.append(counts)

    def _take_call(self, rest: str) -> None:
        number, name, comm_word, type_, count, op, *others = rest.split(" ")
        kit = self.kit
        self._in_order(number, kit.calls)
        comm = _maybe(comm_word, len(kit.comms))
        size = 0 if comm is None else 1 if comm == SELF else len(kit.comms[comm].members)
        types, vectors = len(kit.types), len(kit.vectors)
        bounds = (
            size, size, MOST_COUNT, 2, vectors, types, MOST_COUNT, size, MOST_COUNT, vectors,
            MOST_MEMORY, MOST_MEMORY, MOST_COUNT,
        )
        if len(others) != len(bounds):
            raise ValueError("a call has not all words")
        if name not in KINDS:
            raise ValueError(f"{name[:40]!r} is none of the calls that can be made again")
        call = Call(
            name, comm, _maybe(type_, types), _maybe(count, MOST_COUNT),
            None if _name(op) == NONE else op, *map(_maybe, others, bounds),
        )
        for vector in (call.vector, call.received_vector):
            if vector is not None and len(kit.vectors[vector]) != size:
                raise ValueError("a vector has not a count for each rank")
        kit.calls.append(call)

    def _take_program(self, rest: str) -> None:
        rank, thread, before = rest.split(" ")
        self._end_program()
        key = (_number(rank, 0, self.kit.ranks), _number(thread, 0, MOST_COUNT))
        if key <= self.latest:
            raise ValueError("programs are not in the order of ranks and threads")
        self.latest, self.left = key, _number(before, 0, MOST_COUNT)

    def _end_program(self) -> None:
        if self.left:
            raise ValueError("a program has fewer calls than set up its requests")

    def _in_order(self, number: str, rows: list) -> None:
        _number(number, len(rows), len(rows) + 1)

    def checked(self) -> Kit:
        self._end_program()
        if not self.kit.ranks or len(self.kit.comms) <= SELF:
            raise ValueError("it is not complete")
        return self.kit

    def _check_comm(self, number: int) -> None:
        """One call on the parent makes all of a round."""
        comms, comm = self.kit.comms, self.kit.comms[number]
        if number <= SELF:
            everybody = () if number else range(min(self.kit.ranks, len(comm.members) + 1))
            if (
                not self.kit.ranks or comm[:3] != (number, 0, ("world", "self")[number])
                or [*comm.members] != [*everybody]
            ):
                raise ValueError("the first communicators are not world and self")
            return
        if comm.parent == number or comm.parent == SELF:
            raise ValueError(f"communicator {number} has no parent")
        is_first, members = comm.round == number, set(comm.members)
        if is_first:
            self.free = set(comms[comm.parent].members)
        fits = (
            is_first and comm.members == comms[comm.parent].members if comm.how == "dup"
            else comm.how == "split" and (is_first or comm[:3] == comms[number - 1][:3])
        )
        if not fits or not members <= self.free or len(members) != len(comm.members):
            raise ValueError(f"communicator {number} cannot be made")
        self.free -= members
