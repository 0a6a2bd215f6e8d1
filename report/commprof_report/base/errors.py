"""Errors that are reported to the user, each as one line on stderr."""

from __future__ import annotations

from collections.abc import Sequence


class ReportError(Exception):
    """Input that cannot be read, or output that cannot be written. Exit status 1. `details`: further lines below the first."""

    def __init__(self, subject: object, what: str, details: Sequence[str] = ()) -> None:
        super().__init__(f"{subject}: {what}")
        self.subject = str(subject)
        self.what = what
        self.details = details


class UsageError(ReportError):
    """Wrong options. Exit status 2."""


def version_check(path: object, what: str, version: int, oldest: int, newest: int) -> None:
    """Raises ReportError if this reporter cannot read a schema or ledger of this version, and names one that can."""
    theirs = "the hvprof-report of the commprof that wrote it"
    if version < oldest:
        raise ReportError(path, f"has {what} version {version}, older than this reporter reads ({oldest}): read it with {theirs}")
    if version > newest:
        newer = f"newer than this reporter reads ({newest})"
        raise ReportError(path, f"has {what} version {version}, {newer}: read it with {theirs}, or a newer one")
