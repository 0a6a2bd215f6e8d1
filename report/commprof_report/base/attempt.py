"""No fault of one analysis takes the whole report with it: an analysis that fails is one line on
stderr and in the page, and an exit status; the rest is printed."""

from __future__ import annotations

import multiprocessing
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from . import units
from .errors import EXPECTED

Answer = TypeVar("Answer")

PACKAGE = Path(__file__).resolve().parent.parent
MOST_CHARACTERS = 200
FAULTS: list[str] = []  # of this process, in order


def print_note(note: str) -> None:
    print(f"hvprof-report: {units.visible(note)}", file=sys.stderr)


# whoever asks in Python gets warnings (api.py)
take_note: ContextVar[Callable[[str], None]] = ContextVar("take_note", default=print_note)


def attempt(name: str, analysis: Callable[..., Answer], *given: Any, **more: Any) -> Answer | None:
    """None: it has failed, or one that it is given has. Errors of files and options are raised, and
    in a child all are: its parent makes them again (forked.py)."""
    if any(each is None for each in given):
        return None
    try:
        return analysis(*given, **more)
    except EXPECTED:
        raise
    except Exception as error:
        if multiprocessing.parent_process():
            raise
        if sys.flags.dev_mode:
            traceback.print_exc()
        said = f"{name}: {_fault_text(error)}"
        if said not in FAULTS:  # two parts of a report may need what has failed
            FAULTS.append(said)
            take_note.get()(said)
        return None


def attempts(*parts: tuple) -> list:
    """Answers that are lists, together: (name, analysis, what it is given) each."""
    return [
        row for name, rows, *given in parts
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
