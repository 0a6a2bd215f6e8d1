"""The layout of a ledger: the numbers and structs that ledger_format.h declares; from its entries
to rows of tables, as src/output/rows.def says; and what stands for a ledger elsewhere.

The C header itself is parsed, so every field is declared in one place. It uses little of C: enums,
#define of a number, and structs of numbers and arrays without padding. Neighbouring bit fields are
one number, `a_and_b`; of a union the last member is read. tests/report/test_ledger_format.py
compares the result with the compiler.

Whether the process that wrote a ledger is still alive can be found out only on its own node. A stub
is a file in a run folder that names a ledger on a node, until its first copy takes its place.

A stub is untrusted input. It is written before the ledger is created (src/ledger/copy.h), so a rank
that was killed at its very start leaves one, too.
"""

from __future__ import annotations

import os
import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, Dict, Tuple

from ..base import ReportError, np, row_type, source_text

# the types of numpy
CODES = {
    "char": "S",
    "int32_t": "<i4",
    "int64_t": "<i8",
    "uint8_t": "u1",
    "uint16_t": "<u2",
    "uint32_t": "<u4",
    "uint64_t": "<u8",
}
LIMITS = {
    "INT32_MIN": -(1 << 31),
    "UINT16_MAX": (1 << 16) - 1,
    "UINT32_MAX": (1 << 32) - 1,
    "UINT64_MAX": (1 << 64) - 1,
}
MEMBER = re.compile(r"(?P<type>(?:struct )?\w+) (?P<names>[^;]+);")
BIT_FIELDS = re.compile(r"\w+ (\w+) : \d+;\s*(\w+) (\w+) : \d+;")
UNION = re.compile(r"union \{(?:[^{}]|\{[^{}]*\})*?\s(\w+ \w+;)\s*\};")


class Layout:
    """A struct of the ledger: its fields in order, without padding. One entry is a named tuple, in
    which structs and arrays are sequences; many are an array of numpy, with a column for each
    field. members: of each the name, the element, and of an array its length."""

    def __init__(self, name: str, members: list[tuple]) -> None:
        self.name, self.members = name, members

    @cached_property
    def dtype(self) -> np.dtype:
        return np.dtype([(name, getattr(of, "dtype", of), size) for name, of, size in self.members])

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def make(self) -> Any:
        return row_type(self.name, self.dtype.names or ())._make

    def unpack(self, data: bytes, offset: int = 0):
        return self.make(np.frombuffer(data, self.dtype, 1, offset).tolist()[0])

    def array(self, data: bytes) -> np.ndarray:
        """The entries; bytes behind the last whole one are left out."""
        return np.frombuffer(data, self.dtype, len(data) // self.itemsize)


class Format:
    """Declarations of a header: numbers by name, layouts by the struct's name."""

    def __init__(self, code: str) -> None:
        self.numbers = dict(LIMITS)
        self.layouts: dict[str, Layout] = {}
        for found in re.finditer(
            r"^#define (\w+) ([\w<]+)$|^enum \w*\s*\{(.*?)\};|^struct (\w+) \{\n(.*?)^\};",
            code,
            re.M | re.S,
        ):
            define, value, enumerators, name, members = found.groups()
            if define:
                self.numbers[define] = self._number(value)
            elif name:
                self.layouts[name] = Layout(name, [*self._members(members)])
            value = -1
            for enumerator in filter(None, map(str.strip, (enumerators or "").split(","))):
                name, _, expression = enumerator.partition("=")
                value = self._number(expression) if expression else value + 1
                self.numbers[name.strip()] = value

    def _number(self, expression: str) -> int:
        """The value of a C expression in numbers known so far; the file is part of the program, so
        evaluating it is safe."""
        return eval(
            re.sub(r"(?<=\d)u?ll\b", "", expression.strip()), {"__builtins__": {}}, self.numbers
        )

    def _members(self, members: str) -> Iterator[tuple]:
        """The names of a struct's members; what each is, and of arrays the length. A text has no
        NULs at its end."""
        plain = UNION.sub(r"\1", " ".join(members.split()))
        plain = BIT_FIELDS.sub(r"\2 \1_and_\3;", plain)
        for member in MEMBER.finditer(plain):
            kind = member["type"].rpartition("struct ")[2]
            for declared in member["names"].split(","):
                name, _, length = declared.strip().rstrip("]").partition("[")
                size: Any = self._number(length) if length else ()
                of = self.layouts.get(kind) or CODES[kind]
                yield (name, f"S{size}", ()) if of == "S" else (name, of, size)


FORMAT = Format(source_text("ledger/ledger_format.h"))


def number(name: str) -> int:
    """Value of an enumerator or a macro, without LEDGER_ in front."""
    return FORMAT.numbers["LEDGER_" + name]


def __getattr__(name: str) -> Any:
    """These numbers are names of this module, too."""
    try:
        return number(name)
    except KeyError:
        raise AttributeError(name) from None


def layout(name: str) -> Layout:
    """Layout of a struct, without ledger_ in front."""
    return FORMAT.layouts["ledger_" + name]


# larger numbers of nanoseconds (146 years), bytes or calls of one rank count as damage
MOST = 1 << 62


@lru_cache(1 << 14)
def text(data: bytes) -> str:
    """A text of the ledger, up to the first NUL, in any encoding."""
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def believed(span_ns: int) -> int:
    return span_ns if 0 <= span_ns <= MOST else min(max(span_ns, 0), MOST)


def unless(is_absent: np.ndarray, values: np.ndarray) -> list[Any]:
    """The values as Python's, None where they are absent."""
    return np.where(is_absent, np.array(None), values).tolist()


def hexadecimal(values: np.ndarray) -> np.ndarray:
    """The texts of numbers of 64 bits."""
    return np.array([f"{value:016x}" for value in values.tolist()], object)


# A line of rows.def. kind: RANK, COLUMN, NAME, FLAG, COMPUTED. what: the conversion of a COLUMN,
# the list of a NAME, the mask of a FLAG, the source of a COMPUTED one, in quotes.
Column = namedtuple("Column", "kind name what field", defaults=("", ""))


SOURCE = source_text("output/rows.def")
NAMES: dict[str, tuple[str, ...]] = {
    name: tuple(re.findall(r'"(.*?)"', names))
    for name, names in re.findall(r"^NAMES\((\w+), (.*)\)$", SOURCE, re.M)
}
COLUMNS: dict[str, list[Column]] = {
    table.lower(): [
        Column(kind, *arguments.split(", ", 1 if kind == "COMPUTED" else -1))
        for kind, arguments in re.findall(r"^(\w+)\((.*)\)$", section, re.M)
    ]
    for table, section in re.findall(r"^#ifdef ROWS_OF_(\w+)(.*?)^#endif", SOURCE, re.M | re.S)
}


def numbers_of(table: str, but: Iterable[str]) -> list[str]:
    """The fields that a table's numbers are, without the columns `but`."""
    return [
        column.field
        for column in COLUMNS[table]
        if column.what == "number" and column.name not in but
    ]


def plausible(entries: np.ndarray, fields: Iterable[str]) -> np.ndarray:
    """Which entries have no number in these fields that counts as damage."""
    return np.all([entries[field] < MOST for field in fields], axis=0)


# How entries of a kind become rows. what: the word for them, where some are damaged. key: only the
# first entry with each. The others are functions of Rows and the entries, as columns.
Kind = namedtuple(
    "Kind",
    "kind what key are_there are_sound counts computed",
    defaults=(
        "",
        "",
        lambda rows, found: slice(None),
        lambda rows, found: np.ones(len(found), bool),
        lambda rows, found: slice(None),
        lambda rows, found: {},
    ),
)


class Rows:
    """Makes rows of a ledger's entries. `clock`: converts its ticks; `last_ns`: until when its rank
    is known to have lived. Times are nanoseconds since the rank's start."""

    def __init__(self, ledger: Any, clock: Any, last_ns: int) -> None:
        header = self.header = ledger.header
        self.ledger, self.clock, self.last_ns = ledger, clock, last_ns
        # the last reset; 0: there was none
        self.reset_ns = clock.since_start_ns(header.reset_ticks) if header.reset_ticks else 0
        self.world_rank, self.start_ns = header.world_rank, header.start_ns
        self.conversions: dict[str, Callable] = {
            "number": lambda value: value if value <= MOST else MOST,
            "unless_zero": lambda value: value or None,
            "boolean": lambda value: int(value != 0),
            "text": text,
            "bytes": lambda amount: (
                None if amount == number("BYTES_UNKNOWN") else min(amount, MOST)
            ),
            "rank": lambda rank: None if rank == number("NO_RANK") else rank,
            "call": lambda call: ledger.call_name(call) if call else "",
            "ticks": clock.since_start_ns,
            "clock_ns": lambda ns: believed(ns - header.start_ns) if ns else None,
        }

    def of_kind(self, table: str, kind: Kind) -> list[Any]:
        """The rows of a table; most ledgers have no entries of most kinds."""
        if number(kind.kind) not in self.ledger.chunks:
            return []
        found = self.ledger.entries(kind.kind, kind.key)
        found = found[kind.are_there(self, found)]
        found = self.ledger.sound(found, kind.are_sound(self, found), kind.what)
        found = found[kind.counts(self, found)]
        return self.rows(table, found, **kind.computed(self, found))

    def call_names(self, calls: np.ndarray) -> list[str]:
        return [self.conversions["call"](call) for call in calls.tolist()]

    def since_ns(self, monotonic_ns: np.ndarray) -> np.ndarray:
        """Nanoseconds since the rank's start, at least 0."""
        return np.array([believed(ns - self.start_ns) for ns in monotonic_ns.tolist()], np.int64)

    def _conversion(self, column: Column) -> Callable:
        """How the field becomes the column's value."""
        if column.kind == "NAME":
            names = NAMES[column.what]
            return lambda value: names[value] if value < len(names) else names[0]
        if column.kind == "FLAG":
            mask = number(column.what)
            return lambda value: int(value & mask != 0)
        return self.conversions[column.what]

    def rows(self, table: str, entries: np.ndarray, **computed: object) -> list[Any]:
        """The rows of entries; columns in `computed` have the values given there, one for each
        entry or the same for all."""
        if not len(entries):
            return []
        computed.setdefault("world_rank", self.world_rank)
        columns: list[Any] = []
        for column in COLUMNS[table]:
            if column.name not in computed:
                values = entries[column.field].tolist()
                columns.append(map(self._conversion(column), values))
            elif isinstance(values := computed[column.name], (list, np.ndarray)):
                columns.append(values if isinstance(values, list) else values.tolist())
            else:
                columns.append(repeat(values))
        row = row_type(table, [column.name for column in COLUMNS[table]])
        return list(map(row._make, islice(zip(*columns), len(entries))))


RUNNING, KILLED, UNKNOWN = "running", "killed", "unknown"
# the library notes _exit and exec, but not all ways to them
CUT_OFF = "ended without MPI_Finalize: killed, or left by _exit or exec"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = Path("/proc/self/ns/pid")
STATE_FIELD, START_FIELD = 3, 22  # of /proc/<pid>/stat, counted from 1
DEAD_STATES = "ZXx"


def process_state(pid: int, facts: Mapping[str, str]) -> str:
    """`running`, `killed`, or `unknown` if the process was on another node or in another
    container."""
    namespace = _known(lambda: os.readlink(PID_NAMESPACE))
    if not is_of_this_node(facts) or facts.get("pid_namespace", "") != namespace:
        return UNKNOWN
    state, start = _state_and_start(pid)
    if not start:
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return KILLED
        except OSError:  # of another user: /proc may be mounted with hidepid
            pass
        return UNKNOWN
    return RUNNING if start == facts.get("process_start") and state not in DEAD_STATES else KILLED


def is_of_this_node(facts: Mapping[str, str]) -> bool:
    return bool(facts.get("boot_id")) and facts["boot_id"] == _known(BOOT_ID.read_text).strip()


def _known(read: Callable[[], str]) -> str:
    """Empty if it cannot be read."""
    try:
        return read()
    except OSError:
        return ""


def _state_and_start(pid: int) -> tuple[str, str]:
    """Empty if there is no such process. The second field, the name, may contain spaces and
    brackets."""
    stat = _known(lambda: Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    after_name = stat.rpartition(")")[2].split()
    if len(after_name) <= START_FIELD - 3:
        return "", ""
    return after_name[STATE_FIELD - 3], after_name[START_FIELD - 3]


PREFIX = b"commprof-ledger-at "
STUB = re.compile(re.escape(PREFIX) + rb"(\S+) (\S+) (\S+) (\d{1,9}) (\S+) (/[^\0\n]*)\n")
MOST_STUB_BYTES = 8192


Stub = Tuple[Dict[str, str], Path]  # facts by which the process is known, and its ledger


class LedgerIsNotHere(ReportError):
    """The ledger that a stub names cannot be found from here."""


def stub_read(file: BinaryIO) -> Stub | None:
    """None: the file is no stub."""
    match = STUB.fullmatch(os.pread(file.fileno(), MOST_STUB_BYTES, 0))
    if not match:
        return None
    names = ("host", "boot_id", "pid_namespace", "pid", "process_start")
    facts = (field.decode("utf-8", "replace") for field in match.groups()[:5])
    return dict(zip(names, facts)), Path(os.fsdecode(match[6]))


def not_here(path: Path, stub: Stub) -> LedgerIsNotHere:
    """Says where the ledger of this stub is, or why there is none."""
    facts, ledger = stub
    its_own = f"a {ledger.parent.parent} of its own"
    place, why = "which is not on this host", f"the rank has just begun, or its job has {its_own}"
    if not is_of_this_node(facts):
        is_host = facts["host"] == os.uname().nodename
        place = f"on host {facts['host']}"
        place = "of this host, which has been restarted since" if is_host else place
        why = (
            "nothing is left of this rank"
            if is_host
            else "read the run there, or copy the ledger from there to this file"
        )
    elif process_state(int(facts["pid"]), facts) == KILLED:
        why = f"nothing is left of this rank, unless its job had {its_own}"
    comma = "," * place.startswith("which")
    return LedgerIsNotHere(path, f"names the ledger {ledger}{comma} {place}: {why}")
