"""Errors that are reported to the user, each as one line on stderr."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence


class ReportError(Exception):
    """Input that cannot be read, or output that cannot be written. Exit status 1. `details`:
    further lines below the first."""

    def __init__(self, subject: object, what: str, details: Sequence[str] = ()) -> None:
        super().__init__(f"{subject}: {what}")
        self.subject = str(subject)
        self.what = what
        self.details = details


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
    theirs = "the hvprof-report of the commprof that wrote it"
    if version < oldest:
        raise ReportError(
            path,
            f"has {what} version {version}, older than this reporter reads ({oldest}): read it "
            f"with {theirs}",
        )
    if version > newest:
        newer = f"newer than this reporter reads ({newest})"
        raise ReportError(
            path, f"has {what} version {version}, {newer}: read it with {theirs}, or a newer one"
        )
