"""A kit: the traffic of a job in one file, for commprof-replay, without its program and its data.

The file is text, of 256 MiB at most, in one gzip stream or as `gzip -d` makes it. Its lines, of 16
MiB at most, with - where there is no value (the words of each are in src/tools/replay/kit.def):

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..base.errors import ReportError
from ..base.gather import gathered
from ..base.library_files import library_text

VERSION = 1
NONE = "-"
WORLD, SELF = 0, 1  # numbers of communicators
GRAMMAR = library_text("tools/replay/kit.def")
BOUNDS = {
    name: int(most) for name, most in re.findall(r"^KIT_\w+\((\w+), (-?\d+)\)", GRAMMAR, re.M)
}
WORDS = gathered(  # of each kind of line: how, least, most
    (_kind, tuple(_word)) for _kind, *_word in
    re.findall(r"^KIT_\w+\((\S+), \w+, (\w+), (\w+), (\w+)\)", GRAMMAR, re.M)
)
NAME_BYTES = 39
TOO_LARGE = "a kit has 256 MiB of text at most"
UNLIKE, CANNOT_BE_MADE = "a line is not as in a kit", "a communicator cannot be made"
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
    if len(text) > BOUNDS["TEXT"]:
        raise ReportError(path, f"would be too large: {TOO_LARGE}; record a shorter time")
    path.write_bytes(gzip.compress(text, mtime=0))
    return digest


def text_of(path: Path) -> bytes:
    """A kit's: the file is one gzip stream from its first byte to its last, or the text."""
    content, most = path.read_bytes(), BOUNDS["TEXT"]
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


def _number(word: str, least: int = 0, most: int = BOUNDS["NS"]) -> int:
    if not _is_number(word) or not least <= int(word) <= most:
        raise ValueError("a number is out of range")
    return int(word)


def _numbers(words: Iterable[str], *bounds: int) -> array:
    return array("i", (_number(word, *bounds) for word in words))


def _name(word: str) -> str:
    if not 0 < len(word.encode(errors="surrogateescape")) <= NAME_BYTES:
        raise ValueError("a name is empty or too long")
    return word


READ: dict[str, Callable] = {  # the words that belong together, their least and their most
    "NUMBER": lambda words, *bounds: _number(words[0], *bounds),
    "MAYBE": lambda words, *bounds: None if words == [NONE] else _number(words[0], *bounds),
    "NAME": lambda words, *_: _name(words[0]),
    "HOW": lambda words, *_: words[0],
    "LIST": lambda words, *bounds: _numbers(
        () if words == [NONE] else words[0].split(","), *bounds
    ),
    "NUMBERS": _numbers,
    "TEXT": lambda words, *_: " ".join(words),
}


class _Parser:
    def __init__(self) -> None:
        self.kit = Kit("", 0, 0)
        self.lines = 0  # that are no calls of programs
        self.latest = (-1, -1)  # rank and thread of the present program
        self.left = 0  # calls to come in it that set up
        self.free: set[int] = set()  # ranks of the parent that are in no communicator of this round

    def take(self, whole: bytes) -> None:
        if len(whole) > BOUNDS["LINE"] or b"\0" in whole:
            raise ValueError("a line is too long, or has a byte that is 0")
        line = whole.decode(errors="surrogateescape")
        if "0" <= line[:1] <= "9" or line.startswith("~"):
            self._take_made(*line.removeprefix("~").split(" "))
            return
        kind, *words = line.split(" ")
        self.lines += 1
        if self.lines > BOUNDS["TABLE_LINES"]:
            raise ValueError("a kit has not so many lines before its programs")
        if kind not in WORDS or not words:
            raise ValueError(UNLIKE)
        getattr(self, "_take_" + kind.replace("-", "_"))(*self._values(WORDS[kind], words))

    def _values(self, grammar: Sequence[tuple[str, ...]], words: list[str]) -> Iterator:
        comms, types, vectors = len(self.kit.comms), len(self.kit.types), len(self.kit.vectors)
        bounds = {  # with those that grow with what was read
            **BOUNDS, "RANK": self.kit.ranks - 1, "COMM": comms - 1, "TYPE": types - 1,
            "VECTOR": vectors - 1, "NEXT_COMM": comms, "NEXT_TYPE": types, "NEXT_VECTOR": vectors,
            "NEXT_CALL": len(self.kit.calls),
        }
        for how, least, most in grammar:
            if not words and how != "NUMBERS":
                raise ValueError(UNLIKE)
            taken = len(words) if how in ("NUMBERS", "TEXT") else 1
            yield (value := READ[how](words[:taken], bounds[least], bounds[most]))
            words = words[taken:]
            if most == "COMM":
                bounds["MEMBER"] = self._ranks(value) - 1
        if words:
            raise ValueError(UNLIKE)

    def _ranks(self, comm: int | None) -> int:
        return 0 if comm is None else 1 if comm == SELF else len(self.kit.comms[comm].members)

    def _take_made(self, gap: str, call: str = "", *requests: str) -> None:
        _number(gap)
        name = self.kit.calls[_number(call, 0, len(self.kit.calls) - 1)].name
        if self.latest < (0, 0):
            raise ValueError("a call is in no program")
        for word in requests:
            _number(word, 0, BOUNDS["REQUESTS"])
        if self.left:
            self.left -= 1
        else:
            self.kit.made[name] += 1

    def _take_library(self, text: str) -> None:
        self.kit.library = text

    def _take_ranks(self, ranks: int) -> None:
        if self.kit.ranks:
            raise ValueError("it has two numbers of ranks")
        self.kit.ranks = ranks

    def _take_window(self, ns: int) -> None:
        self.kit.window_ns = ns

    def _take_recorded(self, ns: int, asked_ns: int, why: str) -> None:
        self.kit.record = Record(ns, asked_ns, None if why == NONE else why)

    def _take_left_out(self, calls: int, name: str, why: str) -> None:
        self.kit.left_out[name, why] += calls

    def _take_late(self, calls: int, name: str) -> None:
        self.kit.late[name] += calls

    def _take_comm(self, number: int, *values) -> None:
        if not self.kit.ranks:
            raise ValueError("communicators stand before the number of ranks")
        self.kit.comms.append(Comm(*values))
        if not self._can_be_made(number):
            raise ValueError(CANNOT_BE_MADE)

    def _take_type(self, _: int, *values) -> None:
        self.kit.types.append(Type(*values))

    def _take_vector(self, _: int, counts: Sequence[int]) -> None:
        if sum(counts) > BOUNDS["COUNT"]:
            raise ValueError("the counts of a vector are too large")
        self.kit.vectors.append(counts)

    def _take_call(self, _: int, *values) -> None:
        call = Call(  # type: ignore[misc]
            *(None if value == NONE else value for value in values)  # type: ignore[arg-type]
        )
        if call.name not in KINDS:
            raise ValueError(f"{call.name!r} is none of the calls that can be made again")
        for vector in (call.vector, call.received_vector):
            if vector is not None and len(self.kit.vectors[vector]) != self._ranks(call.comm):
                raise ValueError("a vector has not a count for each rank")
        self.kit.calls.append(call)

    def _take_program(self, rank: int, thread: int, before: int) -> None:
        self._end_program()
        if (rank, thread) <= self.latest:
            raise ValueError("programs are not in the order of ranks and threads")
        self.latest, self.left = (rank, thread), before

    def _end_program(self) -> None:
        if self.left:
            raise ValueError("a program has fewer calls than set up its requests")

    def checked(self) -> Kit:
        self._end_program()
        if not self.kit.ranks or len(self.kit.comms) <= SELF:
            raise ValueError("it is not complete")
        return self.kit

    def _can_be_made(self, number: int) -> bool:
        """One call on the parent makes all of a round."""
        comms, comm = self.kit.comms, self.kit.comms[number]
        members = set(comm.members)
        if number <= SELF:
            everybody = () if number else range(min(self.kit.ranks, len(comm.members) + 1))
            own = number, 0, ("world", "self")[number]
            return comm[:3] == own and [*comm.members] == [*everybody]
        is_first = comm.round == number
        if comm.parent in (number, SELF):
            return False
        if is_first:
            self.free = set(comms[comm.parent].members)
        fits = (
            is_first and comm.members == comms[comm.parent].members if comm.how == "dup"
            else comm.how == "split" and (is_first or comm[:3] == comms[number - 1][:3])
        )
        if not fits or not members <= self.free or len(members) != len(comm.members):
            return False
        self.free -= members
        return True
