"""A kit: the traffic of a job in one file, for commprof-replay, without its program and its data.
It is made a program in one file of C, too, which any mpicc builds: the sources of commprof-replay,
one after the other, and the text of the kit.

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
import posixpath
import re
import zlib
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..base import ReportError, library_file, library_text

VERSION = 1
NONE = "-"
WORLD, SELF = 0, 1  # numbers of communicators
GRAMMAR = library_text("tools/replay/kit.def")
WORDS = re.findall(r"^KIT_(?:WORD|NOTE)\(([\w-]+), (\w+), (\w+)", GRAMMAR, re.M)
MOST_TEXT, MOST_LINES = (  # lines that are no calls
    int(re.findall(rf"KIT_SIZE\({size}, (\d+)\)", GRAMMAR)[0]) for size in ("TEXT", "TABLE_LINES")
)
TOO_LARGE = "a kit has 256 MiB of text at most"
AT_ONCE = 1 << 20  # bytes
BLOCKING, STARTING, COMPLETING = "blocking", "starting", "completing"
PREPARING, RESTARTING, FREEING = "preparing", "restarting", "freeing"  # persistent requests
FINDING, MATCHING, TAKING = "finding", "matching", "taking"  # probes; receives of what they match
PLAYED = library_text("tools/replay/played.def")
DOES = dict(re.findall(r"^PLAYED(?:_MOVING)?\((\w+)(?:, (\w+))?\)", PLAYED, re.M))  # by shape
UNPLAYED = re.findall(r"^UNPLAYED\((\w+)\)", PLAYED, re.M)
KINDS = {  # of the calls that can be made again
    f"MPI_{call}": DOES[shape].lower()
    or {"STARTING": STARTING, "PREPARING": PREPARING}.get(kind.partition("_")[0], BLOCKING)
    for call, kind, shape in re.findall(
        r"^CALL\((\w+), \w+, (\w+), (\w+),", library_text("wrappers/calls.def"), re.M
    )
    if shape in DOES and call not in UNPLAYED
}


def row_of(line: str) -> Any:
    """A row with the words of such a line. None: it has none."""
    names = [word for own, word, _ in WORDS if own == line and word != "number"]
    return namedtuple(line, names, defaults=[None] * len(names[1:]))  # type: ignore[misc]


class Comm(row_of("comm")):  # type: ignore[misc]
    """members: world ranks."""


class Type(row_of("type")):  # type: ignore[misc]
    """A datatype."""


class Call(row_of("call")):  # type: ignore[misc]
    """A call with its arguments; equal ones are one line of the kit."""


class Record(row_of("recorded")):  # type: ignore[misc]
    """The window that the job was asked to record: how much of it all ranks have (0: nothing, the
    kit is of another time), and why not all."""


# A call of a program: nanoseconds since the one before, its number, its requests. is_asleep: in the
# gap the thread slept, or read files.
Made = namedtuple("Made", "gap_ns call requests is_asleep", defaults=[(), False])


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
    # what `made` sums up; not of a kit that was read, as the tables above
    programs: dict[tuple[int, int], list[Made]] = field(default_factory=dict)  # by rank and thread
    before: dict[tuple[int, int], list[Made]] = field(default_factory=dict)  # uncounted set-ups


def lines(kit: Kit) -> Iterator[str]:
    yield from (f"library {kit.library}", f"ranks {kit.ranks}", f"window {kit.window_ns}")
    yield from (f"recorded {_words(record)}" for record in [kit.record] if record)
    left_out = sorted(kit.left_out.items())
    yield from (f"left-out {calls} {name} {why}" for (name, why), calls in left_out)
    yield from (f"late {calls} {name}" for name, calls in sorted(kit.late.items()))
    tables: dict[str, Sequence[Any]] = {
        "comm": kit.comms,
        "type": kit.types,
        "vector": kit.vectors,
        "call": kit.calls,
    }
    for line, rows in tables.items():
        yield from (f"{line} {number} {_words(row)}" for number, row in enumerate(rows))
    for (rank, thread), program in sorted(kit.programs.items()):
        before = kit.before.get((rank, thread), [])
        yield f"program {rank} {thread} {len(before)}"
        for made in (*before, *program):
            yield "~" * made.is_asleep + _words((made.gap_ns, made.call, *made.requests))


def _words(values: Iterable[object]) -> str:
    """Values, and sequences of them."""
    return " ".join(
        NONE
        if value is None
        else str(value)
        if isinstance(value, str) or not isinstance(value, Sequence)
        else ",".join(map(str, value)) or NONE
        for value in values
    )


def write(kit: Kit, path: Path) -> str:
    """Returns the SHA-256, which names the kit: equal traffic has an equal one."""
    text = "".join(f"{line}\n" for line in lines(kit)).encode()
    digest = hashlib.sha256(text).hexdigest()
    text = f"commprof-kit {VERSION}\nsha256 {digest}\n".encode() + text
    if len(text) > MOST_TEXT:
        raise ReportError(path, f"would be too large: {TOO_LARGE}; record a shorter time")
    path.write_bytes(gzip.compress(text, mtime=0))
    return digest


def opened(path: Path) -> BinaryIO:
    """A kit's text: the file is a gzip stream, or the text."""
    with open(path, "rb") as file:
        is_stream = file.read(1) == b"\x1f"
    return cast(BinaryIO, gzip.open(path)) if is_stream else open(path, "rb")


def read(path: Path) -> tuple[Kit, str]:
    """The facts that a kit tells, and its SHA-256, which is compared first and in little memory.
    Whether the calls can be made is for commprof-replay to check (src/tools/replay/kit.c)."""
    try:
        with opened(path) as text:
            digest = _digest(path, text)
        with opened(path) as text:
            return _said(text), digest
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ReportError(path, "is damaged: it is not one whole gzip stream") from None
    except (ValueError, IndexError):
        raise ReportError(path, "has a line that is not as in a kit") from None


def _digest(path: Path, text: BinaryIO) -> str:
    head, said = text.readline(AT_ONCE), text.readline(AT_ONCE)
    if not head.startswith(b"commprof-kit "):
        raise ReportError(path, "is no kit of commprof's")
    if head != f"commprof-kit {VERSION}\n".encode():
        raise ReportError(path, f"is a kit of another version than {VERSION}")
    found = hashlib.sha256()
    while piece := text.read(AT_ONCE):
        if text.tell() > MOST_TEXT:
            raise ReportError(path, f"is too large: {TOO_LARGE}")
        found.update(piece)
    if said != f"sha256 {found.hexdigest()}\n".encode():
        raise ReportError(path, "is damaged: its SHA-256 is another one")
    return found.hexdigest()


def _said(text: BinaryIO) -> Kit:
    kit, names = Kit("", 0, 0), list[str]()  # of calls
    before, left = 0, MOST_LINES  # calls to come that set up, lines that are no calls of programs
    for line in io.TextIOWrapper(text, "utf-8", "surrogateescape", newline="\n"):
        kind, *words = line.rstrip("\n").split(" ")
        if kind.lstrip("~").isdecimal():
            before -= 1
            if before < 0:
                kit.made[names[_number(words[0])]] += 1
            continue
        left -= 1
        if left < 0:
            raise ValueError(line)
        if kind == "program":
            before = _number(words[2])
        elif kind == "call":
            names.append(words[1])
        elif kind in ("library", "ranks", "window"):
            vars(kit).update(_read(kind, words))
        elif kind == "recorded":
            kit.record = Record(**_read(kind, words))
        elif kind in ("left-out", "late"):
            note = _read(kind, words)
            if kind == "late":
                kit.late[note["name"]] += note["calls"]
            else:
                kit.left_out[note["name"], note["why"]] += note["calls"]
    return kit


def _read(line: str, words: Sequence[str]) -> dict[str, Any]:
    """The facts of a line, by name."""
    known = [(word, how) for own, word, how in WORDS if own == line]
    return {
        word: (None if words[at:] == [NONE] else " ".join(words[at:]))
        if how == "TEXT"
        else _number(words[at])
        if how == "NUMBER"
        else words[at]
        for at, (word, how) in enumerate(known)
    }


def _number(word: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", word):
        raise ValueError(word)
    return int(word)


MAIN = "tools/replay/commprof_replay.c"
OWN = re.compile(r'^#include "(.*\.h)"\n', re.M)
LIST = re.compile(r'^#include "(.*\.def)"\n', re.M)  # once in each place
SYSTEM = re.compile(r"^#include <.*>\n", re.M)
HEAD = """\
/* Copyright (c) 2026, the commprof authors. SPDX-License-Identifier: BSD-3-Clause
 *
 * The MPI calls of a job, without its program and its data. To make them again:
 *
 *     mpicc {program}.c -o {program} -ldl -lpthread
 *     mpirun -n {ranks} ./{program}
 *
 * ./{program} --help has options. Here are the sources of commprof-replay, and at the end the
 * calls, in lines, with - where there is no value:
 *
{format}
 */
#define _GNU_SOURCE
"""
LIBRARY = """
/* The rest finds MPI's functions by name, for which a linker would not link the library. */
int MPI_Init(int *, char ***);
int (*const linked_library)(int *, char ***) = MPI_Init;

/* No library is bound to a function here that has the name of one of its own. */
#pragma GCC visibility push(hidden)

/* Headers have more than is used here. */
#pragma GCC diagnostic ignored "-Wunused-function"
"""


def program_of(path: Path, name: str) -> str:
    """The C of a kit, which is checked. `name`: as whoever builds it calls the program."""
    kit, _ = read(path)
    described = (__doc__ or "").partition(":\n\n")[2].rstrip()
    head = HEAD.format(
        program=name,
        ranks=kit.ranks,
        format="\n".join(f" * {line}".rstrip() for line in described.split("\n")),
    )
    files = {
        name: LIST.sub(
            lambda list_: library_text(_included(name, list_[1])),
            library_text(name),
        )
        for name in _sources()
    }
    includes = {line for text in files.values() for line in SYSTEM.findall(text)}
    bodies = (
        f"\n/* src/{name} */\n{SYSTEM.sub('', OWN.sub('', text))}" for name, text in files.items()
    )
    with opened(path) as file:
        text = file.read().decode(errors="surrogateescape")
    return "".join(
        (
            head,
            *sorted(includes),
            LIBRARY,
            *bodies,
            f"\nconst char kit_inside[] =\n{_literal(text)};\n",
        )
    )


def _sources() -> list[str]:
    """The main file and all that it needs, by their paths in src/: headers first, each after those
    that it includes. Behind a header is the file of its name."""
    ordered: list[str] = []

    def add(file: str) -> None:
        if file in ordered:
            return
        for name in OWN.findall(library_text(file)):
            add(_included(file, name))
        ordered.append(file)
        body = f"{file[:-1]}c"
        if library_file(body):
            add(body)

    add(MAIN)
    return sorted(ordered, key=lambda file: file.endswith(".c"))


def _included(file: str, name: str) -> str:
    """The path in src/ of a file that another one includes."""
    beside = posixpath.join(posixpath.dirname(file), name)
    return beside if library_file(beside) else name


def _literal(text: str) -> str:
    """A string of C for each line. Question marks might be trigraphs."""

    def escaped(match: re.Match) -> str:
        return "".join(f"\\{byte:03o}" for byte in match[0].encode(errors="surrogateescape"))

    return (
        re.sub(r"[^ !#->@-\[\]-~\n]", escaped, text)
        .rstrip("\n")
        .replace("\n", '\\n"\n"')
        .join(('"', '\\n"'))
    )
