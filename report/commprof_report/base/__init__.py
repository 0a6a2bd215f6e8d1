"""Parts that do not depend on a run. What every room uses is here: types of rows; values that share
a key, or may be absent; thresholds by name; the options and operands of a command as rows of a
table, in argparse's words; and words to the user on stderr: errors, each as one line, and progress.

No fault of one analysis takes the whole report with it: an analysis that fails (`attempt`) is one
line on stderr and in the page, and an exit status; the rest is printed.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import sys
import time
import traceback
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from . import units
from .thresholds import TABLE

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Row = Any  # of a query: its columns are the fields; or of a type that row_type made


def row_type(name: str, fields: Iterable[Any]) -> Any:
    """fields: names, or Fields (field.py)."""
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


class Option(NamedTuple):
    """Without names: values of options that a command does not take."""

    names: tuple[str, ...]
    settings: dict[str, Any]
    group: str = ""  # its title in help
    is_alone: bool = False  # no other of its group beside it


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


def seconds(text: str) -> int:
    """The argument of --limit and its like."""
    match = re.fullmatch(r"([1-9]\d{0,5})([smh]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text}: a time like 600 (seconds), 90m or 2h")
    return int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


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
    if isinstance(error, MemoryError):
        return ReportError(
            "the files of this run", "hold more than fits into the memory that this process may use"
        )
    return ReportError("the files of this run", f"do not fit together: {error}")


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
        if sys.flags.dev_mode:
            traceback.print_exc()
        said = f"{name}: {_fault_text(error)}"
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


def _fault_text(error: Exception) -> str:
    ours = [
        f"{Path(frame.filename).resolve().relative_to(PACKAGE)} line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if PACKAGE in Path(frame.filename).resolve().parents
    ]
    what = units.shortened(f"{type(error).__name__}: {error}", MOST_CHARACTERS)
    return (
        f"not analysed, because of an error in {ours[-1]} ({what}); please report it with this line"
    )


PATIENCE_S = 1.0
BETWEEN_S = 0.2


class Progress:
    def __init__(self, doing: str, whole: int, what: str = "files") -> None:
        self.doing, self.whole, self.what, self.done = doing, whole, what, 0
        self.is_wanted = sys.stderr is not None and sys.stderr.isatty()
        self.next_s = time.monotonic() + PATIENCE_S
        self.is_shown = False

    def __enter__(self) -> Progress:
        return self

    def step(self) -> None:
        self.done += 1
        if self.is_wanted and time.monotonic() >= self.next_s:
            self.next_s = time.monotonic() + BETWEEN_S
            self.is_shown = True
            print(
                f"\r{self.doing} {self.done} of {self.whole} {self.what}",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def clear(self, *_: object) -> None:
        if self.is_shown:
            self.is_shown = False
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    __exit__ = clear
