"""Parts that do not depend on a run. What every room uses is here: types of rows; values that share
a key, or may be absent; thresholds by name; the options and operands of a command as rows of a
table, in argparse's words; words to the user on stderr: errors, each as one line, and progress;
columns of numpy; and the columns of an answer.

No fault of one analysis takes the whole report with it: an analysis that fails (`attempt`) is one
line on stderr and in the page, and an exit status; the rest is printed.

Columns: many rows of one kind, as one numpy array for each field, and groups of rows. Those of a
query are as it names them; what makes others may declare them, as a dataclass. `np` is numpy,
imported when it is first used: what only prints starts without it, and who lacks it is told so in
a line.

A column of an answer (`Field`) is said once: its key, its meaning (docs/SCHEMA.md), and for people
its head and its form. A key ends in its unit, which has a form.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import sys
import time
from collections import namedtuple
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from itertools import repeat
from pathlib import Path
from sqlite3 import Connection, Cursor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from . import units
from .thresholds import TABLE

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Row = Any  # of a query: its columns are the fields; or of a type that row_type made


def row_type(name: str, fields: Iterable[Any]) -> Any:
    """fields: names, or Fields."""
    return _row_type(name, tuple(getattr(field, "key", field) for field in fields))


@lru_cache(maxsize=None)
def _row_type(name: str, keys: tuple[str, ...]) -> Any:
    return namedtuple(name, keys)  # type: ignore[misc]


def gathered(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key; keys in the order in which they were first seen."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def by(rows: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    return gathered((key(row), row) for row in rows)


def present(value: Value | None) -> Value:
    """The value; that it is not None follows from what the caller has checked."""
    assert value is not None
    return value


class Unknown(NamedTuple):
    """Why something is not known. needs: what would let it be known of this run, as far as that can
    be told."""

    why: str
    needs: str = ""

    def __str__(self) -> str:
        return f"unknown: {self.why}"


_VALUES = {each.name: each.value for each in TABLE}


def threshold(name: str) -> float:
    return _VALUES[name]


def whole(name: str) -> int:
    """A threshold that is counted."""
    value = _VALUES[name]
    assert isinstance(value, int), f"{name} is not a whole number"
    return value


# Without names: values of options that a command does not take. group: its title in help. is_alone:
# no other of its group beside it.
Option = namedtuple("Option", "names settings group is_alone", defaults=("", False))


def option(*names: str, group: str = "", is_alone: bool = False, **settings: Any) -> Option:
    return Option(names, settings, group, is_alone)


def options_add(parser: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    for each in options:
        if not each.names:
            parser.set_defaults(**each.settings)
            continue
        if each.group not in groups:
            group = parser.add_argument_group(each.group)
            groups[each.group] = group.add_mutually_exclusive_group() if each.is_alone else group
        groups[each.group].add_argument(*each.names, **each.settings)


def checked(read: Callable[[str], Value | None], what: str) -> Callable[[str], Value]:
    """The type of an option. read: gives the value of a word; None or ValueError: it has none, and
    the error says what it should be."""

    def value_of(word: str) -> Value:
        with suppress(ValueError):
            if (value := read(word)) is not None:
                return value
        raise argparse.ArgumentTypeError(f"{word}: {what}")

    return value_of


seconds = checked(  # the argument of --limit and its like
    lambda word: (
        (found := re.fullmatch(r"([1-9]\d{0,5})([smh]?)", word))
        and int(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]
    ),
    "a time like 600 (seconds), 90m or 2h",
)


class ReportError(Exception):
    """Input that cannot be read, or output that cannot be written. Exit status 1. `details`:
    further lines below the first."""

    def __init__(self, subject: object, what: str, details: Sequence[str] = ()) -> None:
        super().__init__(str(subject), what, details)
        self.subject = str(subject)
        self.what = what
        self.details = details

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}"


# whatever else ends a program is a fault of the program
EXPECTED = (ReportError, OSError, sqlite3.Error, MemoryError)


def as_report(error: Exception) -> ReportError:
    """Message for an error of these kinds."""
    if isinstance(error, ReportError):
        return error
    if isinstance(error, OSError):
        return ReportError(error.filename or "output", error.strerror or str(error))
    if is_full(error):
        return ReportError(
            "temporary files", "no space is left for them; TMPDIR can name another folder"
        )
    what = (
        "hold more than fits into the memory that this process may use"
        if isinstance(error, MemoryError)
        else f"do not fit together: {error}"
    )
    return ReportError("the files of this run", what)


def is_full(error: Exception) -> bool:
    """SQLite has no more space for a run, which is in temporary files if it is large."""
    return isinstance(error, sqlite3.OperationalError) and "disk is full" in str(error)


class UsageError(ReportError):
    """Wrong options. Exit status 2."""


def version_check(path: object, what: str, version: int, oldest: int, newest: int) -> None:
    """Raises ReportError if this reporter cannot read a schema or ledger of this version, and names
    one that can."""
    if not oldest <= version <= newest:
        than = f"older than this reporter reads ({oldest})"
        than = than if version < oldest else f"newer than this reporter reads ({newest})"
        raise ReportError(
            path,
            f"has {what} version {version}, {than}: read it with the hvprof-report of the commprof "
            f"that wrote it{', or a newer one' if version > newest else ''}",
        )


PACKAGE = Path(__file__).resolve().parent.parent
MOST_CHARACTERS = 200
FAULTS: list[str] = []  # of this process, in order


def print_note(note: str) -> None:
    print(f"hvprof-report: {units.visible(note)}", file=sys.stderr)


# whoever asks in Python gets warnings (api.py)
# in a process that works for another one
is_worker: ContextVar[bool] = ContextVar("is_worker", default=False)
take_note: ContextVar[Callable[[str], None]] = ContextVar("take_note", default=print_note)


def attempt(name: str, analysis: Callable[..., Value], *given: Any, **more: Any) -> Value | None:
    """None: it has failed, or one that it is given has. Errors of files and options are raised, and
    in a worker all are: whoever wants its result makes them again (workers.py)."""
    if any(each is None for each in given):
        return None
    try:
        return analysis(*given, **more)
    except EXPECTED:
        raise
    except Exception as error:
        if is_worker.get():
            raise
        import traceback  # not at the top: it is slow to import

        if sys.flags.dev_mode:
            traceback.print_exc()
        ours = [
            f"{Path(frame.filename).resolve().relative_to(PACKAGE)} line {frame.lineno}"
            for frame in traceback.extract_tb(error.__traceback__)
            if PACKAGE in Path(frame.filename).resolve().parents
        ]
        what = units.shortened(f"{type(error).__name__}: {error}", MOST_CHARACTERS)
        said = (
            f"{name}: not analysed, because of an error in {ours[-1]} ({what}); please report it "
            "with this line"
        )
        if said not in FAULTS:  # two parts of a report may need what has failed
            FAULTS.append(said)
            take_note.get()(said)
        return None


def attempts(*parts: tuple) -> list:
    """Values that are lists, together: (name, analysis, what it is given) each."""
    return [
        row
        for name, rows, *given in parts
        for row in attempt(name, lambda *own: list(rows(*own)), *given) or []
    ]


PATIENCE_S = 1.0
BETWEEN_S = 0.2


def watched(items: Iterable[Value], doing: str, whole: int, what: str = "files") -> Iterator[Value]:
    """The items. If they take long, a terminal shows how many of them are done."""
    first_s = next_s = time.monotonic() + PATIENCE_S
    is_wanted = sys.stderr is not None and sys.stderr.isatty()
    try:
        for done, item in enumerate(items):
            if is_wanted and time.monotonic() >= next_s:
                next_s = time.monotonic() + BETWEEN_S
                line = f"\r{doing} {done} of {whole} {what}"
                print(line, end="", file=sys.stderr, flush=True)
            yield item
    finally:
        if next_s > first_s:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


NONE = -(1 << 62)  # a number that is not there: SQL's null
AT_ONCE = 50_000  # rows
FEW = 512  # rows that are sorted at once

if TYPE_CHECKING:
    import numpy as np

    Ints = np.ndarray  # of int64
    Floats = np.ndarray  # of float64
    Flags = np.ndarray  # of bool
    TextInts = np.ndarray  # of int64: numbers of texts (Texts), or NONE
else:
    Ints = Floats = Flags = TextInts = "np.ndarray"

    class Deferred:
        def __getattr__(self, name: str) -> Any:
            try:
                import numpy
            except ImportError:
                how = "the package python3-numpy, or pip install numpy"
                raise ReportError(
                    "numpy", f"this needs it, and this Python does not have it: {how}"
                ) from None
            vars(self).update(vars(numpy))
            return getattr(numpy, name)

    np = Deferred()


class Texts:
    """Numbers for texts, from 0 in the order in which they were first seen."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.numbers: dict[str | None, int] = {None: NONE}

    def number(self, text: str | None) -> int:
        if text is not None and text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return self.numbers[text]

    def all(self, texts: Sequence[str | None]) -> TextInts:
        for text in dict.fromkeys(texts):
            self.number(text)
        return np.fromiter(map(self.numbers.__getitem__, texts), np.int64, len(texts))

    def text(self, number: int) -> str | None:
        return None if number == NONE else self.texts[number]

    def among(self, numbers: TextInts, texts: Container[str | None]) -> Flags:
        """Which of the numbers are those of these texts?"""
        chosen = np.fromiter(
            (text in texts for text in [*self.texts, None]), bool, len(self.texts) + 1
        )
        return chosen[np.where(numbers == NONE, len(self.texts), numbers)]

    def order(self) -> Ints:
        """By number: the place of its text among all, in alphabetical order."""
        order = np.empty(len(self.texts), np.int64)
        order[sorted(range(len(self.texts)), key=self.texts.__getitem__)] = np.arange(
            len(self.texts)
        )
        return order


class Columns:
    """Columns of the same length, by name."""

    def __init__(self, **columns: np.ndarray) -> None:
        vars(self).update(columns)

    def __getattr__(self, name: str) -> np.ndarray:
        raise AttributeError(f"there is no column {name}")

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def take(self: Table, rows: np.ndarray | slice) -> Table:
        """These rows, by their numbers or flags."""
        if not isinstance(rows, slice) and rows.dtype == bool and rows.all():
            return self
        return type(self)(**{name: column[rows] for name, column in vars(self).items()})

    def tuples(self, names: str) -> Iterator[tuple]:
        """The values of these columns, row by row."""
        return zip(*(getattr(self, name).tolist() for name in names.split()))

    def changed(self: Table, **columns: np.ndarray) -> Table:
        """With these columns."""
        return type(self)(**{**vars(self), **columns})


Table = TypeVar("Table", bound=Columns)


def table(
    kind: type[Table], rows: Iterable[Sequence[Any]], texts: Texts, names: Sequence[str] = ()
) -> Table:
    """Rows of Python's values; texts become numbers, None becomes NONE. names: of columns that the
    kind does not declare. Those that begin with is_ are flags."""
    columns = list(zip(*rows)) or repeat(())
    names = names or [*getattr(kind, "__dataclass_fields__")]
    return kind(**{name: _array(name, values, texts) for name, values in zip(names, columns)})


def read(kind: type[Table], cursor: Cursor, texts: Texts) -> Table:
    """The rows that a query answers."""
    names = [column[0] for column in cursor.description]
    pieces = iter(partial(cursor.fetchmany, AT_ONCE), [])
    parts = [table(kind, rows, texts, names) for rows in pieces]
    return joined(kind, parts or [table(kind, [], texts, names)])


def read_large(
    kind: type[Table], connection: Connection, query: str, texts: Texts, text_names: Container[str]
) -> Table:
    """The rows of a query of whole numbers and texts, of which the first column is their number.
    SQL writes each column of numbers as one text for numpy: no number becomes Python's."""
    described = connection.execute(f"SELECT * FROM ({query}) LIMIT 0").description
    place, *names = [column[0] for column in described]
    counts = ", ".join(f"count({name})" for name in names)
    last, *present = connection.execute(f"SELECT max({place}), {counts} FROM ({query})").fetchone()
    numbers = [
        f"group_concat(coalesce({name}, {NONE}))"
        for name, count in zip(names, present)
        if count and name not in text_names
    ]
    parts = []
    for first in range(0, (last or 0) + 1, AT_ONCE):
        rows = f"FROM ({query}) WHERE {place} BETWEEN {first} AND {first + AT_ONCE - 1}"
        counted = ", ".join(["count(*)", *numbers])
        size, *found = connection.execute(f"SELECT {counted} {rows}").fetchone()
        left = iter(found)
        columns = {
            name: np.full(size, NONE)
            if not count
            else texts.all([text for (text,) in connection.execute(f"SELECT {name} {rows}")])
            if name in text_names
            else np.fromstring(next(left) or "", np.int64, sep=",")
            for name, count in zip(names, present)
        }
        parts.append(kind(**columns))
    return joined(kind, parts)


def joined(kind: type[Table], parts: Sequence[Columns]) -> Table:
    """The rows of all parts, with the columns that each of them has."""
    parts = [part for part in parts if len(part)] or parts[:1]
    names = [name for name in vars(parts[0]) if all(name in vars(part) for part in parts)]
    if len(parts) == 1:
        return kind(**vars(parts[0]))
    return kind(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in names})


def _array(name: str, values: Sequence[Any], texts: Texts) -> np.ndarray:
    first = next((value for value in values if value is not None), None)
    if isinstance(first, str):
        return texts.all(values)
    if isinstance(first, float) or name.startswith("is_"):
        return np.array(values, np.float64 if isinstance(first, float) else bool)
    try:
        return np.fromiter(values, np.int64, len(values))
    except TypeError:
        return np.array([NONE if value is None else value for value in values], np.int64)


class Groups:
    """Runs of neighbouring rows that have the same keys. There may be no row."""

    def __init__(self, *keys: np.ndarray) -> None:
        rows = len(keys[0])
        changes = np.zeros(rows, bool)
        changes[:1] = True
        for key in keys:
            changes[1:] |= key[1:] != key[:-1]
        self.first = np.flatnonzero(changes)  # row of each group
        self.counts = np.diff(np.append(self.first, rows))
        self.of_row = np.cumsum(changes) - 1  # group of each row
        self.rows = rows

    def __len__(self) -> int:
        return len(self.first)

    def spread(self, of_groups: np.ndarray) -> np.ndarray:
        """A value for each group, at each of its rows."""
        return of_groups[self.of_row]

    def max(self, values: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, self.first) if self.rows else values[:0]

    def min(self, values: np.ndarray) -> np.ndarray:
        return np.minimum.reduceat(values, self.first) if self.rows else values[:0]

    def sum(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, self.first) if self.rows else values[:0]

    def place(self) -> Ints:
        """Position of each row in its group, from 0."""
        return np.arange(self.rows) - self.first[self.of_row]

    def first_at(self, flags: Flags) -> Ints:
        """First row of each group at which the flag is set; the number of all rows if there is
        none."""
        return self.min(np.where(flags, np.arange(self.rows), self.rows))

    def first_most(self, values: np.ndarray) -> Ints:
        """First row of each group that has the group's largest value."""
        return self.first_at(values == self.spread(self.max(values)))


def _packed(keys: Sequence[np.ndarray]) -> Ints | None:
    """One number for each row, in the order of its keys, which is sorted faster than they are.
    None: there are few rows, or no numbers are large enough."""
    if len(keys[0]) < FEW or any(key.dtype.kind == "f" for key in keys):
        return None
    numbers, count = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        low = key.min()
        if low == NONE:
            low = key[key != NONE].min(initial=1 << 62) - 1
            key = np.maximum(key, low)
        size = int(key.max()) - int(low) + 1
        count *= size
        if count > 1 << 62:
            return None
        numbers = numbers * size + (key.astype(np.int64) - low)
    return numbers


def grouped(*keys: np.ndarray) -> tuple[Ints, Groups]:
    """The order of the rows by these keys, equal ones in their own order, and the groups in that
    order."""
    packed = _packed(keys)
    if packed is not None:
        order = np.argsort(packed, kind="stable")
        return order, Groups(packed[order])
    order = np.lexsort(keys[::-1])
    return order, Groups(*(key[order] for key in keys))


def numbered(*keys: np.ndarray) -> Ints:
    """For each row the number of its keys, in their order: the same for the same keys."""
    order, groups = grouped(*keys)
    numbers = np.empty(groups.rows, np.int64)
    numbers[order] = groups.of_row
    return numbers


def found_in(keys: Sequence[np.ndarray], known: Sequence[np.ndarray]) -> Ints:
    """For each row of keys the first row of `known` that has the same; -1: none has."""
    both = [np.concatenate(pair) for pair in zip(known, keys)]
    packed = _packed(both)
    numbers = numbered(*both) if packed is None else packed
    number, first = np.unique(numbers[: len(known[0])], return_index=True)
    if not len(number):
        return np.full(len(keys[0]), -1)
    own = numbers[len(known[0]) :]
    place = np.minimum(np.searchsorted(number, own), len(number) - 1)
    return np.where(number[place] == own, first[place], -1)


def pairs(wanted: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """Each row of wanted with each row of keys, which are in order, that is equal."""
    begin, end = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    return each_from(begin, end - begin)


def each_from(begin: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Each row as often as it counts, with places that follow one another from its begin."""
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts - begin, counts)


def covered(begins: Ints, ends: Ints, number: int) -> Flags:
    """Which of so many places are in a span, from its begin up to its end?"""
    change = np.zeros(number + 1, np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, ends, -1)
    return np.cumsum(change)[:-1] > 0


def by_rank(world_ranks: Ints) -> Iterator[tuple[int, Ints]]:
    """Each rank with its rows."""
    order, groups = grouped(world_ranks)
    for first, rows in zip(groups.first.tolist(), np.split(order, groups.first[1:])):
        yield int(world_ranks[order[first]]), rows


AS_EVERYWHERE = "[as everywhere](#answers)"  # docs/SCHEMA.md defines these keys once
FORMS = {
    "ns": units.duration,
    "share": units.share,
    "bytes": lambda value: units.volume(value or None),
    "s": units.bandwidth,
    "mhz": lambda value: units.NO_VALUE if value is None else f"{value:,.0f}",
}


class Field(NamedTuple):
    """of_row: formats several columns of a row; form: the value, if its unit does not say how.
    Without a head it is for scripts alone; without a meaning it shares that of the field before. A
    number is flush right. of: how a view computes it (summarize.py), if its key does not say
    how."""

    key: str
    meaning: str
    head: str = ""
    form: Callable[[Any], str] | None = None
    is_number: bool = True
    of_row: Callable[[Any], str] | None = None
    of: Any = None

    @property
    def unit(self) -> str:
        return self.key.rpartition("_")[2]

    def show(self, row: Row) -> str:
        if self.of_row:
            return self.of_row(row)
        return (self.form or FORMS.get(self.unit, units.count))(getattr(row, self.key))


def text(key: str, meaning: str, head: str = "", width: int = 1 << 20) -> Field:
    return Field(key, meaning, head, lambda value: units.shortened(value or "", width), False)


def column(head: str, show: Callable[..., str], is_number: bool = True) -> Field:
    """A column for people alone, which says something of a whole row."""
    return Field("", "", head, is_number=is_number, of_row=show)


def number(key: str, meaning: str, head: str = "") -> Field:
    """A name, not a quantity."""
    return Field(key, meaning, head, lambda value: units.NO_VALUE if value is None else str(value))


def keys(fields: Sequence[Field]) -> list[str]:
    return [field.key for field in fields]


def shown(fields: Sequence[Field], keys: str = "") -> list[Field]:
    """The fields for people; in the order of these keys, if any."""
    by_key = {field.key: field for field in fields if field.head}
    return [by_key[key] for key in keys.split() or by_key]


def telling(fields: Sequence[Field], rows: Sequence[Row], *optional: str) -> list[Field]:
    """Without the fields that have no value, or 0, in all rows. optional: their keys; those of one
    text stand together."""
    empty = [
        each.split()
        for each in optional
        if not any(getattr(row, key) for row in rows for key in each.split())
    ]
    return [field for field in fields if not any(field.key in each for each in empty)]
