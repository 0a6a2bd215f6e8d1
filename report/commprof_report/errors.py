"""What can go wrong in a way that the user should read. Each becomes one line on stderr."""

from __future__ import annotations


class ReportError(Exception):
    """Input that cannot be read, output that cannot be written. Exit status 1."""

    def __init__(self, subject: object, what: str) -> None:
        super().__init__(f"{subject}: {what}")
        self.subject = str(subject)
        self.what = what


class UsageError(ReportError):
    """Options that make no sense. Exit status 2."""
